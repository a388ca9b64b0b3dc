"""Prints the type stubs of `oxigrad.torch` and `oxigrad.optax`, whose names come from the table of optimizers: ``python tools/stubs.py``.

Editors and type checkers read them; nothing else does.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).parent.parent / "python" / "oxigrad"
HEADS = {
    "torch": """from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from oxigrad.torch.interchange import load_state_dict as load_state_dict
from oxigrad.torch.interchange import state_dict as state_dict
from oxigrad.torch.lbfgs import LBFGS as LBFGS
from oxigrad.torch.state.file import read_state as read_state
from oxigrad.torch.step.offload.host import HostMemory as HostMemory

class _Stepping:
    def no_step(self) -> AbstractContextManager[None]: ...
    def norm_pass(self) -> AbstractContextManager[None]: ...
    @property
    def ahead(self) -> list[str]: ...
    def synchronize(self) -> None: ...
    def flush(self) -> None: ...
""",
    "optax": """from typing import Any

from oxigrad.optax.composed import muon as muon
from oxigrad.optax.composed import noisy_sgd as noisy_sgd
from oxigrad.optax.composed import optimistic_adam as optimistic_adam
from oxigrad.optax.flat import flat as flat
from oxigrad.optax.pytrees import State as State
from oxigrad.optax.transformation import Transformation as Transformation
from oxigrad.optax.transformation import transformation as transformation
""",
}
_PARAMS = "Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]"


def path(name: str) -> Path:
    """The file of the stub of a package."""
    return PACKAGE / name / "__init__.pyi"


def stub(name: str) -> str:
    """The text of the stub of a package, which must be importable."""
    module = importlib.import_module(f"oxigrad.{name}")
    made = [key for key in module.__all__ if f" as {key}\n" not in HEADS[name]]
    parts = _classes(module, made) if name == "torch" else _functions(module, made)
    return "\n".join(["# Printed by tools/stubs.py.", HEADS[name], *parts])


def _classes(module: ModuleType, names: list[str]) -> Iterator[str]:
    for name in sorted(names):
        kind = getattr(module, name)
        theirs = getattr(kind, "theirs", None)
        base = f"torch.optim.{theirs.__name__}" if theirs else "torch.optim.Optimizer"
        yield f"class {name}(_Stepping, {base}):"
        yield _documented(kind)
        arguments = _arguments(kind, number="float | Tensor", params=_PARAMS, seed="int")
        yield f"    def __init__(self, {arguments}) -> None: ...\n"


def _functions(module: ModuleType, names: list[str]) -> Iterator[str]:
    for name in sorted(names):
        function = getattr(module, name)
        yield f"def {name}({_arguments(function)}) -> Transformation:"
        yield f"{_documented(function)}\n"


def _documented(value: Any) -> str:
    text = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return f'    """{text}"""' if "\n" not in text else '    """' + text.replace("\n", "\n    ") + '\n    """'


def _arguments(value: Any, number: str = "Any", **annotations: str) -> str:
    """The parameters of a function, annotated by their defaults."""
    found, is_keyword = [], False
    for parameter in inspect.signature(value).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            found.append("*")
            is_keyword = True
        annotation = annotations.get(parameter.name) or _annotation(parameter.default, number)
        default = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
        found.append(f"{parameter.name}: {annotation}{default}".replace("= inf", '= float("inf")'))
    return ", ".join(found)


def _annotation(default: Any, number: str) -> str:
    """The type of an argument with this default, where numbers are of the type ``number``."""
    if isinstance(default, tuple):
        return f"tuple[{', '.join(_annotation(item, number) for item in default)}]"
    return {bool: "bool", str: "str", float: number, int: number}.get(type(default), "Any")


def main() -> int:
    """Writes the stubs of the packages whose libraries are installed; returns the exit status."""
    for name in HEADS:
        try:
            text = stub(name)
        except ModuleNotFoundError as error:
            sys.stderr.write(f"oxigrad.{name}: {error}\n")
            continue
        path(name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
