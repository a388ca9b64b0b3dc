"""xarray: a ``DataArray``, ``Variable`` or ``Dataset`` is a container of its data.

Dimensions, coordinates and attributes are not differentiated. Functions of xarray run on variables, since they call
NumPy's functions on the data.
"""

import sys
from typing import Any

import numpy as np

from oxigrad import _core


def container(cls: type) -> None:
    """Registers a class of containers of xarray, by functions: see `oxigrad.ops.backends.container_of`."""
    library = sys.modules.get("xarray")
    if library is None or issubclass(cls, library.IndexVariable):  # whose data is an index of pandas
        return
    if issubclass(cls, (library.DataArray, library.Variable)):
        _core.tree_register_functions(cls, _data, _with_data)
    elif issubclass(cls, library.Dataset):
        _core.tree_register_functions(cls, _data_arrays, _with_data_arrays)


def _variable(array: Any) -> Any:
    """The variable of an array; data of a file is loaded, and kept in it."""
    variable = getattr(array, "variable", array)
    return variable.load() if hasattr(variable._data, "get_duck_array") else variable


def _data(array: Any) -> tuple[dict[str, Any], Any]:
    """The data of an array by its name, and the array."""
    return {"data": _variable(array).data}, array


def _with_data(array: Any, children: list[Any]) -> Any:
    """An array like another with other data; data of another shape, or no array, is returned unchanged."""
    (data,) = children
    shape = getattr(data, "shape", None)
    if shape is None and not array.shape and isinstance(data, (int, float, complex)):
        data = np.asarray(data)
    elif shape is None or tuple(shape) != tuple(array.shape):
        return data
    copy = array.copy(deep=False)
    # Past the conversion to an array of NumPy, which traced values refuse.
    _variable(copy)._data = data
    return copy


def _data_arrays(dataset: Any) -> tuple[dict[Any, Any], Any]:
    """The data of each data variable of a dataset by its name, and the dataset."""
    return {name: _variable(dataset.variables[name]).data for name in dataset.data_vars}, dataset


def _with_data_arrays(dataset: Any, children: list[Any]) -> Any:
    """A dataset like another with other data; a dict by name if a child's shape differs from its variable's."""
    data = dict(zip(dataset.data_vars, children, strict=True))
    arrays = {name: _with_data(dataset.variables[name], [child]) for name, child in data.items()}
    if any(array is child for array, child in zip(arrays.values(), children, strict=True)):
        return data
    copy = dataset.copy(deep=False)
    for name, array in arrays.items():
        copy.variables[name]._data = array._data
    return copy
