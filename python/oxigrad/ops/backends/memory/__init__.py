"""Arrays in memory: copies to the host, within a library and between libraries, and descriptions of arrays of CUDA devices."""
