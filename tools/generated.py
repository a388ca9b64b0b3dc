"""Prints all that is generated: ``python tools/generated.py [NAME ...]``, where a name is one of `PRINTERS`.

The rules as native code are printed here: ``generated.rs`` of the core, and the programs for its tests. What needs a library that is not
installed stays as it is.
"""

import argparse
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oxigrad import _core, optim
from oxigrad.optim.table.row import TABLE, Row
from oxigrad.rules import gradient_transforms

_CORE = Path(__file__).parent.parent / "rust" / "core"
PATHS = _CORE / "src" / "kernel" / "native" / "generated.rs", _CORE / "tests" / "meaning" / "programs_table.rs"


def _tail() -> Any:
    """A step of mixed-precision training from the unscaling of gradients to their zeros."""
    parts = [optim.ClipByGlobalNorm(1.0), optim.AdamW(), optim.EMA(), optim.Copy()]
    return optim.chain(*parts, loss_scale=optim.LossScale(1024.0), zero_gradients=True)


def _with_known_norm(**options: Any) -> Any:
    """A clipped step whose norm was measured before, in a backward or piece by piece."""
    return optim.chain(
        optim.transform(gradient_transforms.clip_by_known_norm, "ClipByKnownNorm")(), optim.AdamW(), **options
    )


# The chains that have a kernel too, by the name of the optimizer whose kernels they follow.
CHAINS: dict[str, dict[str, Callable[[], Any]]] = {
    "AdamW": {
        "AdamWAverage": lambda: optim.chain(optim.AdamW(), optim.EMA()),
        "ClippedAdamW": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW()),
        "ClippedAdamWMaster": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(), master=True),
        "AdamWOfKnownNorm": _with_known_norm,
        "AdamWOfKnownNormMaster": lambda: _with_known_norm(master=True),
        "ClippedAdamWAverage": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(), optim.EMA()),
        "ClippedAdamWTail": _tail,
    },
}


def _kernels(title: str, row: Row) -> dict[str, Callable[[], Any]]:
    """The optimizers of a row with a kernel: those of the column ``native``, and chains."""
    made = {name: functools.partial(row.optimizer, **values) for name, values in row.native.items()}
    return {**made, **CHAINS.get(title, {})}


# The optimizers by the name of the kernel. Other kernels are interpreted.
SHIPPED = {name: make for title, row in TABLE.items() for name, make in _kernels(title, row).items()}


def texts() -> tuple[str, str]:
    """The texts of the files."""

    def program(optimizer: Any) -> Any:
        choice = optimizer._whole_group("bfloat16")
        return choice.program(choice.rule())

    return _core.print_generated([(name, program(make())) for name, make in SHIPPED.items()])


def print_kernels() -> None:
    """Writes the files."""
    for path, text in zip(PATHS, texts(), strict=True):
        path.write_text(text)


# What is printed, by the module and the name of the function that does it. Stubs come first, since tables read signatures.
PRINTERS = {
    "kernels": "generated.print_kernels",
    "stubs": "stubs.print_stubs",
    "rules": "optimizer_tables.print_rules",
    "torch": "optimizer_tables.print_torch",
    "gpu": "gpu_table.print_proofs",
    "figures": "figures.print_figures",
    "functions": "function_table.print_functions",
    "roads": "optimizer_tables.print_roads",
}


def main() -> int:
    """Prints what is named, or all; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(PRINTERS)}; by default all")
    names = parser.parse_args().names or [*PRINTERS]
    if unknown := sorted({*names} - {*PRINTERS}):
        parser.error(f"NAME is {unknown[0]!r}: expected some of {', '.join(PRINTERS)}")
    tests = Path(__file__).parent.parent / "tests"
    sys.path[:0] = [str(tests / "emulators"), str(tests / "tables")]
    os.environ.setdefault("KERAS_BACKEND", "jax")
    warnings.simplefilter("ignore")
    status = 0
    for name in names:
        module, _, function = PRINTERS[name].partition(".")
        try:
            status |= getattr(importlib.import_module(module), function)() or 0
        except ModuleNotFoundError as error:
            sys.stderr.write(f"{name}: {error}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
