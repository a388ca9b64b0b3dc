"""Steps on a device: launches of kernels, the loss scale and the counts of steps that lie there."""
