"""A step over the parameter groups of PyTorch: the choice of an executor, and the step resolved to it."""
