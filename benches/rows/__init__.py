"""The rows of the comparison, one file a topic."""

import importlib

_FILES = """adamw chain custom_rules digits distributed functions gpu gpu_offload gradients host_time jacobians jit memory offload optimizers package precision
    recorded rule small_programs sparse tail torch_optim transformer"""
TOPICS = {name: importlib.import_module(f"rows.{name}") for name in _FILES.split()}
ROWS = [row for topic in TOPICS.values() for row in topic.ROWS]
FAMILIES = [*TOPICS["optimizers"].FAMILIES]
