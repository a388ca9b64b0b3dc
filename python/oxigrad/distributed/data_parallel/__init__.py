"""Data-parallel training: gradients in buckets, and the state of the optimizer in shards."""
