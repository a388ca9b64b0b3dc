"""Modules of `oxigrad.xp` as facades, which gather the public names of the files that define them."""

import sys
from collections.abc import Callable
from types import ModuleType

from oxigrad._names import without
from oxigrad.ops.protocols.arguments import document


def gathered(module: str, *parts: ModuleType) -> tuple[Callable[[], list[str]], Callable[[str], object]]:
    """The ``__dir__`` and ``__getattr__`` of a module, which gets the public names of its ``parts``.

    The docstrings of functions get sections of arguments. Private names and a stub hide all other names of the module
    from editors that complete names.
    """
    space = sys.modules[module]
    names = [name for part in parts for name in part.__all__]
    vars(space).update({name: getattr(part, name) for part in parts for name in part.__all__}, __all__=names)
    document(module.removeprefix("oxigrad."), space, names)
    return without(module, names)
