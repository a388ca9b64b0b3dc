"""The plan of a step for a model: groups, executors, gradients and programs, resolved once and reused until a version changes."""
