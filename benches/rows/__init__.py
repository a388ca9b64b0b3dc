"""The rows of the comparison, one file a topic."""

import importlib

_FILES = """adamw chain compiled_rule custom_rules digits distributed functions gpu gpu_offload gradients host_time jacobians jit memory offload optimizers package precision
    recorded rule small_programs sparse tail torch_optim transformer"""
TOPICS = {name: importlib.import_module(f"rows.{name}") for name in _FILES.split()}
ROWS = [row for topic in TOPICS.values() for row in topic.ROWS]
#: Sets of rows by name, for ``--rows``: programs and functions as scientists write them, beside compilers.
GROUPS = {
    "science": "recorded: 200 steps,recorded: pendulum,recorded: Kalman,recorded: HMM,recorded: RK4,recorded: Jacobian,recorded: network,"
    "recorded: digits,recorded: mixture,recorded: transformer,recorded: Rosenbrock,rule with a tanh,* of float32*per element,* of float64*per element"
}
FAMILIES = [*TOPICS["optimizers"].FAMILIES]
