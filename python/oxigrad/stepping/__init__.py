"""One step of an optimizer over a tree of parameters: planning, execution, state."""
