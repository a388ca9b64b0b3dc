"""Representation of rules: the declarations of a signature, composition, slots, domains, and shared functions."""
