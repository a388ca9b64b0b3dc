"""Containers and tests of classes by autograd's names. Here, containers are Python's own."""

import builtins
from typing import Any

from oxigrad._core import plain
from oxigrad.autograd.extend import Box

tuple = builtins.tuple
list = builtins.list
dict = builtins.dict
SequenceBox = builtins.list
DictBox = builtins.dict


def isinstance(A: object, B: Any) -> bool:
    """Whether a value, or the plain value of a variable, is an instance of a class."""
    return builtins.isinstance(A, B) or builtins.isinstance(plain(A), B)


def type(x: object) -> builtins.type:
    """Class of a value, or of the plain value of a variable."""
    return builtins.type(plain(x))


__all__ = ["Box", "DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]
