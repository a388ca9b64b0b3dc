"""The state of PyTorch's form: converted, checked and loaded."""
