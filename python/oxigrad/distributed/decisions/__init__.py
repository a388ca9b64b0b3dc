"""Decisions of distributed methods as pure, deterministic state machines: events in, actions out.

They open no socket, read no clock and start no thread, so that any run can be replayed from its events.
"""
