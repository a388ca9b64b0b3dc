"""Slots of parameters: begun, tabulated, viewed by name, and averages that are computed from them."""
