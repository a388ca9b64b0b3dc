"""Methods of training with several workers, each a wrapper around an optimizer."""
