"""Array libraries: one adapter for each that differs from the Array API standard, and dispatch between them.

* `dispatch`: the namespace and the adapter of an array, looked up once for each type of array.
* `generic`: the adapter of every library without its own file, and base class of the others.
* `numpy`, `torch`, `jax`, `cupy`, `dask`, `mlx`, `ndonnx`: the adapters of these libraries.
* `xarray`: its containers as trees.
* `arrays`: dtype, device, size and host access of an array of any library.
* `memory`: copies within and between libraries, and descriptions of arrays in the memory of CUDA devices.
* `functions`: functions that a library may lack.
"""

from oxigrad.ops.backends.arrays import *  # noqa: F403 - a function is named in its file alone
from oxigrad.ops.backends.dispatch import *  # noqa: F403
from oxigrad.ops.backends.memory.copies import *  # noqa: F403
from oxigrad.ops.backends.memory.device_memory import *  # noqa: F403
