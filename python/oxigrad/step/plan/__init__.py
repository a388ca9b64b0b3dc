"""The plan of a step for a model, resolved once and reused until a version changes."""
