"""The twelve problems of GradBench, one file each, beside PyTorch, JAX and HIPS autograd.

    python benches/gradbench [--rows PATTERN,...] [--small] and the other options of versus.py

GradBench (https://github.com/gradbench/gradbench) collects benchmarks of automatic differentiation; gmm, ba, ht and lstm are those of
ADBench (Srajer, Kukelova and Fitzgibbon, "A benchmark of selected algorithmic differentiation tools on some problems in computer vision
and machine learning", 2018). The functions here are written from the definitions that each file states, with data that are made up; their
times can be set beside those that GradBench publishes, of the same sizes, but for the machine.

Everybody evaluates the same formulas in the style of NumPy, over its own library. A result is checked before it is timed.
"""

import importlib
from typing import Any

PROBLEMS = "hello gmm ba ht lstm kmeans det llsq lse ode particle saddle".split()
TOPICS = {name: importlib.import_module(f"gradbench.{name}") for name in PROBLEMS}
ROWS = [row for topic in TOPICS.values() for row in topic.ROWS]
#: Sets of rows by name, as `rows.GROUPS`.
GROUPS = {
    "science": "ode n1000 ,ht simple,ba1,lstm,kmeans,det,llsq,lse,particle rr,saddle rr",
}
FAMILIES: list[Any] = []
