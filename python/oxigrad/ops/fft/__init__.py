"""Fourier transforms: the standard's, and transforms of `scipy.fft`, which `oxigrad.xp.fft` gathers."""
