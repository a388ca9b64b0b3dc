"""Prints the table of all optimizers: ``python tools/overview.py`` writes docs/rules.md."""

import inspect
from pathlib import Path

import numpy as np

from oxigrad import optim
from oxigrad.rules import compat

PATH = Path(__file__).parent.parent / "docs" / "rules.md"

HEAD = """\
# The optimizers, one by one

Printed from the rules by `make generated`; do not edit. What holds for all of them is on [a page of its own](optimizers.md).

Each is a function of a few lines in [python/oxigrad/rules](../python/oxigrad/rules), which says where its formula is from and where
libraries differ. Slots are kept for each parameter, in its dtype; the bytes are for one number of float32, in a matrix of 256 by 256.
A slot in italics is one number for a whole array; one in brackets is kept only with the hyperparameter named. *As in* says whose
numbers the defaults give, and in brackets whose `compat="..."` gives. Compiled rules run as native code, others are interpreted, a
block at a time, or called on whole arrays.

| optimizer | what it is | slots | bytes | as in | compiled |
|---|---|---|---|---|---|
"""


def text() -> str:
    """The text of the file."""
    rows = [
        row(made)
        for name, made in vars(optim).items()
        if inspect.isclass(made) and made.__name__ == name and issubclass(made, optim.RuleOptimizer) and made._declared
    ]
    return HEAD + "\n".join(rows) + "\n"


def row(made: type[optim.RuleOptimizer]) -> str:
    """An optimizer as a line of the table."""
    names = {
        slot.name: f"({slot.name}: `{slot.when}`)"
        if slot.when is not None
        else f"*{slot.name}*"
        if slot.is_number
        else slot.name
        for slot in made._rule.slots
    }
    matrix, opt = np.zeros((256, 256), np.float32), made()
    opt.build({"w": matrix})
    kept = sum(array.nbytes for array in opt.slots["w"].values() if array.shape)
    libraries = compat.PRESETS.get(made.__name__, {})
    like = ", ".join(name if not values else f"({name})" for name, values in libraries.items())
    summary = (made.__doc__ or "").partition("\n")[0].replace("``", "`")
    compiled = "called" if not made._rule.elementwise else "yes" if opt.program.is_native else ""
    size = f"{kept / matrix.size:.2g}"
    return f"| {made.__name__} | {summary} | {', '.join(names.values())} | {size} | {like} | {compiled} |"


if __name__ == "__main__":
    PATH.write_text(text())
