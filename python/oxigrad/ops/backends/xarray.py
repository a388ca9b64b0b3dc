"""xarray: a ``DataArray``, ``Variable`` or ``Dataset`` is a container of its data.

Dimensions, coordinates and attributes are not differentiated. Functions of xarray run on variables, since they call
NumPy's functions on the data.
"""

import sys
from collections.abc import Hashable
from typing import Any, TypeAlias

from oxigrad import _core
from oxigrad._typing import Array

Dataset: TypeAlias = Any


def container(cls: type) -> None:
    """Registers a class of containers of xarray, by functions: see `oxigrad.ops.backends.container_of`."""
    library = sys.modules.get("xarray")
    if library is None or issubclass(cls, library.IndexVariable):  # whose data is an index of pandas
        return
    if issubclass(cls, (library.DataArray, library.Variable)):
        _core.tree_register_functions(cls, _data, _with_data)
    elif issubclass(cls, library.Dataset):
        _core.tree_register_functions(cls, _data_arrays, _with_data_arrays)


def _data(array: Array) -> tuple[dict[str, Array], Array]:
    """The data of an array by its name, and the array; data of a file is loaded, and kept in it."""
    variable = getattr(array, "variable", array)
    return {"data": (variable if variable.chunks else variable.load()).data}, array


def _with_data(array: Array, children: list[Array]) -> Array:
    """An array like another with other data; data of another shape, or no array, is returned unchanged."""
    (data,) = children
    return array.copy(deep=False, data=data) if _fits(data, array) else data


def _data_arrays(dataset: Dataset) -> tuple[dict[Hashable, Array], Dataset]:
    """The data of each data variable of a dataset by its name, and the dataset."""
    return {name: _data(dataset.variables[name])[0]["data"] for name in dataset.data_vars}, dataset


def _with_data_arrays(dataset: Dataset, children: list[Array]) -> Dataset | dict[Hashable, Array]:
    """A dataset like another with other data; a dict by name if a child's shape differs from its variable's."""
    data = dict(zip(dataset.data_vars, children, strict=True))
    fit = all(_fits(child, dataset.variables[name]) for name, child in data.items())
    return dataset.copy(deep=False, data=data) if fit else data


def _fits(data: Array, array: Array) -> bool:
    """Whether data has the shape of an array, as a number has of one without axes."""
    shape = () if isinstance(data, (int, float, complex)) else getattr(data, "shape", None)
    return shape is not None and tuple(shape) == tuple(array.shape)
