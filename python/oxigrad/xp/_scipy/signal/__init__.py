"""Convolutions and linear filters of signals, which `oxigrad.xp.signal` gathers."""
