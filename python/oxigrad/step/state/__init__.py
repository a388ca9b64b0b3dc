"""The state of an optimizer by key path, and its files."""
