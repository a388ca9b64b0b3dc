"""Parameters and groups of them, each with the executor that updates it."""
