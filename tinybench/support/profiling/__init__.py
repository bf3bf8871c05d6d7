"""Support for lesson 15: sampled call stacks, and experiments on the gain from a faster stage of a pipeline."""
