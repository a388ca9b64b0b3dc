"""Array libraries: one adapter for each that differs from the Array API standard, and dispatch between them.

* `dispatch`: the namespace and the adapter of an array, looked up once for each type of array.
* `generic`: the adapter of every library without a file of its own, and base class of the others.
* `numpy`, `torch`, `jax`, `cupy`, `dask`, `mlx`, `ndonnx`: the adapters of these libraries.
* `arrays`: dtype, device, size and host access of an array of any library; `copies`: copies within and between
  libraries.
* `device_memory`: descriptions of arrays in the memory of CUDA devices.
* `functions`: functions that a library may lack.
"""

from oxigrad.ops.backends.arrays import REFUSALS as REFUSALS
from oxigrad.ops.backends.arrays import device_of as device_of
from oxigrad.ops.backends.arrays import dtype_name as dtype_name
from oxigrad.ops.backends.arrays import dtype_of as dtype_of
from oxigrad.ops.backends.arrays import fetched as fetched
from oxigrad.ops.backends.arrays import is_array as is_array
from oxigrad.ops.backends.arrays import is_batched as is_batched
from oxigrad.ops.backends.arrays import is_smooth as is_smooth
from oxigrad.ops.backends.arrays import lowest as lowest
from oxigrad.ops.backends.arrays import on_host as on_host
from oxigrad.ops.backends.arrays import size_of as size_of
from oxigrad.ops.backends.copies import copied as copied
from oxigrad.ops.backends.copies import copied_like as copied_like
from oxigrad.ops.backends.copies import fingerprint as fingerprint
from oxigrad.ops.backends.copies import laid_out_like as laid_out_like
from oxigrad.ops.backends.copies import row_major as row_major
from oxigrad.ops.backends.copies import to_host as to_host
from oxigrad.ops.backends.device_memory import DeviceMemory as DeviceMemory
from oxigrad.ops.backends.device_memory import device_number as device_number
from oxigrad.ops.backends.dispatch import adapter_of as adapter_of
from oxigrad.ops.backends.dispatch import array_of as array_of
from oxigrad.ops.backends.dispatch import container_of as container_of
from oxigrad.ops.backends.dispatch import detached as detached
from oxigrad.ops.backends.dispatch import has_batched as has_batched
from oxigrad.ops.backends.dispatch import has_variable as has_variable
from oxigrad.ops.backends.dispatch import implementation as implementation
from oxigrad.ops.backends.dispatch import is_complex as is_complex
from oxigrad.ops.backends.dispatch import is_immutable as is_immutable
from oxigrad.ops.backends.dispatch import is_of_kind as is_of_kind
from oxigrad.ops.backends.dispatch import namespace as namespace
from oxigrad.ops.backends.dispatch import obstacle as obstacle
from oxigrad.ops.backends.dispatch import refuse_masked_or_units as refuse_masked_or_units
from oxigrad.ops.backends.dispatch import resolved as resolved
from oxigrad.ops.backends.dispatch import standard_namespace as standard_namespace
from oxigrad.ops.backends.dispatch import strip as strip
from oxigrad.ops.backends.dispatch import zeros_of as zeros_of
