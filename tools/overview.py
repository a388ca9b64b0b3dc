"""Prints the tables of all optimizers: ``python tools/overview.py`` writes docs/rules.md, and the table of optax's names in docs/jax.md."""

import numpy as np

from oxigrad import optim
from oxigrad.optim.table.row import TABLE, Alias
from printed_tables import DOCS, PrintedTable, markdown

PATH = DOCS / "rules.md"
ALIASES = PrintedTable("jax.md", "aliases", "overview")

HEAD = """\
# List of optimizers

<!-- Printed by `make generated`: do not edit. -->

See [Optimizers](optimizers.md) for options, chains and groups.

Each rule is a function in [python/oxigrad/rules](../python/oxigrad/rules), with the source of its formula and differences
between libraries. Slots have the shape and dtype of the parameter. A slot in italics is one number for each parameter. A slot
in brackets exists only with the named hyperparameter. *Bytes* is the size of the slots for each element of a
float32 matrix of 256 by 256. *Same as* lists the libraries whose results the defaults reproduce. Libraries in
brackets need `compat="..."`. Compiled rules run as native code; others are interpreted block by block, or called on whole arrays.

| optimizer | summary | slots | bytes | same as | compiled |
|---|---|---|---|---|---|
"""


def text() -> str:
    """The text of the file."""
    return HEAD + "\n".join(row(each.optimizer) for each in TABLE.values()) + "\n"


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
    like = ", ".join(name if not values else f"({name})" for name, values in made._presets.items())
    summary = (made.__doc__ or "").partition("\n")[0].replace("``", "`")
    compiled = "called" if not made._rule.elementwise else "yes" if opt.program.is_native else ""
    size = f"{kept / matrix.size:.2g}"
    return f"| {made.__name__} | {summary} | {', '.join(names.values())} | {size} | {like} | {compiled} |"


def aliases() -> str:
    """The table of the functions of `oxigrad.optax`, a line for those of each row of the table of optimizers."""
    rows = [
        (", ".join(f"`{name}`" for name in row.optax), ", ".join(map(composed, row.optax.values())))
        for row in TABLE.values()
        if row.optax
    ]
    return markdown(("`oxigrad.optax`", "the rule of `oxigrad.optim`"), rows)


def composed(alias: Alias) -> str:
    """The optimizer of an alias in words."""
    names = alias.nesterov if alias.defaults.get("nesterov") else alias.parts
    parts = f"`{names[0]}`" if len(names) == 1 else f"`chain({', '.join(names)})`"
    fixed = ", ".join(f"{name}={value!r}" for name, value in alias.fixed.items())
    return f"{parts} with `{fixed}`" if fixed else parts


if __name__ == "__main__":
    PATH.write_text(text())
    ALIASES.print(aliases())
