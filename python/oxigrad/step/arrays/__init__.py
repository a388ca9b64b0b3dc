"""Arrays of a step: gradients, their rows and ties, and the precision and places of what rules are called on."""
