"""Steps in host memory for parameters on a device: gradients come down, and weights go up."""
