"""Prints the shipped rules as native code for the core: ``python tests/generated.py`` writes rust/core/src/generated.rs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from oxigrad import _core, optim, testing

PATH = Path(__file__).parent.parent / "rust" / "core" / "src" / "generated.rs"

# A kernel for each shipped rule that is one pass over memory, and for the flags that are in use; and the ceiling of the
# benchmarks.
SHIPPED: dict[str, Callable[[], Any]] = {
    "Sgd": optim.SGD,
    "Momentum": optim.Momentum,
    "Nesterov": lambda: optim.Momentum(nesterov=True),
    "Asgd": optim.ASGD,
    "Rprop": optim.Rprop,
    "Signum": optim.Signum,
    "Lion": optim.Lion,
    "Adagrad": optim.Adagrad,
    "AdagradInside": lambda: optim.Adagrad(epsilon_mode="inside"),
    "Adadelta": optim.Adadelta,
    "RmsProp": optim.RMSprop,
    "RmsPropInside": lambda: optim.RMSprop(epsilon_mode="inside"),
    "RmsPropMomentum": lambda: optim.RMSprop(momentum=0.9),
    "RmsPropCentered": lambda: optim.RMSprop(centered=True),
    "Ftrl": optim.FTRL,
    "Adam": optim.Adam,
    "AdamHat": lambda: optim.Adam(epsilon_mode="hat"),
    "AmsGrad": lambda: optim.Adam(amsgrad="raw"),
    "AdamW": optim.AdamW,
    "AdamWHat": lambda: optim.AdamW(epsilon_mode="hat"),
    "AmsGradW": lambda: optim.AdamW(amsgrad="raw"),
    "Adamax": optim.Adamax,
    "NAdam": optim.NAdam,
    "RAdam": optim.RAdam,
    "AdaBelief": optim.AdaBelief,
    "AdEmaMix": optim.AdEMAMix,
    "Adopt": optim.ADOPT,
    "Adan": optim.Adan,
    "Yogi": optim.Yogi,
    "Sophia": optim.Sophia,
    "Madgrad": optim.MADGRAD,
    "ScheduleFreeSgd": optim.ScheduleFreeSGD,
    "ScheduleFreeAdamW": optim.ScheduleFreeAdamW,
    "Stream": lambda: optim.define(testing.stream)(),
}


def text() -> str:
    """What the file must hold."""
    return _core.print_generated([(name, make().program) for name, make in SHIPPED.items()])


if __name__ == "__main__":
    PATH.write_text(text())
