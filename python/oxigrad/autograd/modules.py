"""Modules under other names: modules made of names of others, and ``import autograd`` answered by this package."""

import importlib
import importlib.abc
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from oxigrad._core import Variable

_OURS, _THEIRS = "oxigrad.autograd", "autograd"


def public(module: Any) -> dict[str, Any]:
    """Public names of a module or an object, with their values."""
    return {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}


def made(name: str, contents: Mapping[str, Any], *, is_package: bool = False) -> ModuleType:
    """A module of this name and contents, which import statements find, and an attribute of its package."""
    module = ModuleType(name, f"Names of `{name.removeprefix('oxigrad.')}`.")
    module.__spec__ = ModuleSpec(name, None, is_package=is_package)
    if is_package:
        module.__path__ = []
    vars(module).update(contents)
    package, _, attribute = name.rpartition(".")
    setattr(sys.modules[package], attribute, module)
    return sys.modules.setdefault(name, module)


def install() -> None:
    """Makes ``import autograd`` import `oxigrad.autograd` in this process, in this module and all others.

    Raises ImportError where HIPS autograd is imported already: modules that hold its functions would not mix with
    these.

    >>> import subprocess, sys
    >>> program = '''
    ... import oxigrad.autograd
    ... oxigrad.autograd.install()
    ... import autograd.numpy as np
    ... from autograd import grad
    ... print(grad(lambda x: np.sin(x))(0.0), end='')
    ... '''
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    '1.0'
    """
    imported = sys.modules.get(_THEIRS)
    if imported is sys.modules[_OURS]:
        return
    if imported is not None:
        raise ImportError(
            "oxigrad.autograd.install: found autograd imported already, from "
            f"{getattr(imported, '__file__', '?')}: expected the call before the first import of autograd"
        )
    sys.meta_path.insert(0, _Names())
    importlib.import_module(_THEIRS)
    # Libraries tell autograd's boxes by the module of their class.
    Variable.__module__ = f"{_THEIRS}.numpy.numpy_boxes"


class _Names(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder and loader of autograd's modules: each is the module of this package, under both names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.partition(".")[0] == _THEIRS else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"oxigrad.{spec.name}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restores the module's own specification, which the import system has replaced."""
        specification: Any = module.__spec__
        module.__spec__ = specification.loader_state
