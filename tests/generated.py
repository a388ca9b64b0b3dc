"""Prints the shipped rules as native code for the core: ``python tests/generated.py`` writes rust/core/src/generated.rs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from oxigrad import _core, optim, testing

PATH = Path(__file__).parent.parent / "rust" / "core" / "src" / "generated.rs"

# A kernel for each rule that most people train with, and the ceiling of the benchmarks. Compiled, a rule takes a third to a
# half of the arithmetic's time; but each costs seconds of every build of the core, for all instruction sets and both dtypes.
# Some are of parameters of bfloat16.
SHIPPED: dict[str, Callable[[], Any]] = {
    "Sgd": optim.SGD,
    "Momentum": optim.Momentum,
    "Nesterov": lambda: optim.Momentum(nesterov=True),
    "Lion": optim.Lion,
    "Adagrad": optim.Adagrad,
    "RmsProp": optim.RMSprop,
    "Adam": optim.Adam,
    "AdamW": optim.AdamW,
    "AdamWMaster": lambda: optim.AdamW(master=True),
    "AdamWKahan": lambda: optim.AdamW(rounding="kahan"),
    "Stream": lambda: optim.define(testing.stream)(),
}


def text() -> str:
    """What the file must hold."""

    def program(optimizer: Any) -> Any:
        choice = optim.Choice(optimizer, optimizer, {}, "bfloat16")
        return choice.program(choice.rule())

    return _core.print_generated([(name, program(make())) for name, make in SHIPPED.items()])


if __name__ == "__main__":
    PATH.write_text(text())
