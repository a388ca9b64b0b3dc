"""Settings of an optimizer: hyperparameters, options, groups of parameters, the loss scale, and their configuration."""
