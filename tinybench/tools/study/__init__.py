"""Studies of the gains and costs of number formats, such as INT8 and FP16, for one model."""
