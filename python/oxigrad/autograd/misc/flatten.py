"""Containers as vectors, by the names of `autograd.misc.flatten`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import tree


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Vector of all numbers of a container, by sorted keys, and the function that makes the container of one.

    >>> flat, unflatten = flatten({"b": 1.0, "a": [2.0, 3.0]})
    >>> flat, unflatten(flat)
    (array([2., 3., 1.]), {'a': [np.float64(2.0), np.float64(3.0)], 'b': np.float64(1.0)})
    """
    value = _by_sorted_keys(value)
    return tree.ravel(value) if tree.leaves(value) else (np.zeros(0), lambda _: value)


def _by_sorted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _by_sorted_keys(value[key]) for key in sorted(value)}
    return type(value)(map(_by_sorted_keys, value)) if type(value) in (list, tuple) else value


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """Function of vectors for a function of containers, the maker of containers, and the example as a vector."""
    vector, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, vector
