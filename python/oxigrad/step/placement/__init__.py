"""Steps of parameters whose slots lie elsewhere: in host memory, or in a file."""
