"""What single lessons need: toys whose truth is known, simulations, figures. Nothing of it is taught."""
