"""Memory of arrays: copies to the host, within a library and between libraries, and descriptions of device memory."""
