"""Optimizers and tests that evaluate the loss in a step: L-BFGS and its line search, SAM, and the learning-rate range test."""
