"""Optimizers and tests that evaluate the loss in a step: L-BFGS, its line search, SAM, the learning-rate range test."""
