"""Engines: how the workers of a job are started, and how they exchange messages."""
