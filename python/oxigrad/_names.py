"""Errors for unknown names of modules, with the name that was probably meant, and for libraries that are not installed."""

import difflib
import importlib
from collections.abc import Callable, Iterable
from types import ModuleType


def unknown_name(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error for a module that has no such name, which suggests one of its public ``names``.

    >>> unknown_name("oxigrad.optim", "adam", ["Adam", "AdamW"])
    AttributeError("module 'oxigrad.optim' has no attribute 'adam' (did you mean Adam?)")
    """
    found = "" if name.startswith("_") else nearest(name, names)
    hint = f" (did you mean {found}?)" if found else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def without(module: str, names: Iterable[str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a module that has these public ``names``, and no others."""

    def absent(name: str) -> object:
        raise unknown_name(module, name, names)

    return absent


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that differs from ``name`` in case and underscores alone, or the one nearest to it; empty where none is near."""
    plain = {each.lower().replace("_", ""): each for each in names}
    written = name.lower().replace("_", "")
    found = [written] if written in plain else difflib.get_close_matches(written, plain, 1)
    return plain[found[0]] if found else ""


def library(name: str, absent: str) -> ModuleType:
    """The module of another library; where it is not installed, ``ModuleNotFoundError`` with the text ``absent``.

    >>> library("numpy", "needs NumPy").__name__
    'numpy'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise  # it is installed, and lacks a library itself
        raise ModuleNotFoundError(absent, name=error.name) from error
