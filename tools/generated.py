"""Prints the shipped rules as native code for the core: ``python tools/generated.py`` writes its ``generated.rs``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from oxigrad import _core, optim

PATH = Path(__file__).parent.parent / "rust" / "core" / "src" / "kernel" / "native" / "generated.rs"

# A kernel for each rule of one pass over memory, with the flags that most people set. Some are of parameters of bfloat16.
# Other kernels are interpreted.
SHIPPED: dict[str, Callable[[], Any]] = {
    "Sgd": optim.SGD,
    "Momentum": lambda: optim.SGD(momentum=0.9),
    "Nesterov": lambda: optim.SGD(momentum=0.9, nesterov=True),
    "Asgd": optim.ASGD,
    "OptimisticSgd": optim.OptimisticSGD,
    "Rprop": optim.Rprop,
    "Signum": optim.Signum,
    "Lion": optim.Lion,
    "Adagrad": optim.Adagrad,
    "Adadelta": optim.Adadelta,
    "RmsProp": optim.RMSprop,
    "RmsPropMomentum": lambda: optim.RMSprop(momentum=0.9),
    "RmsPropCentered": lambda: optim.RMSprop(centered=True),
    "Ftrl": optim.FTRL,
    "Madgrad": optim.MADGRAD,
    "Adam": optim.Adam,
    "AdamAmsgrad": lambda: optim.Adam(amsgrad="raw"),
    "AdamW": optim.AdamW,
    "AdamWAmsgrad": lambda: optim.AdamW(amsgrad="raw"),
    "AdamWMaster": lambda: optim.AdamW(master=True),
    "AdamWKahan": lambda: optim.AdamW(rounding="kahan"),
    "AdamWAverage": lambda: optim.chain(optim.AdamW(), optim.EMA()),
    "Adamax": optim.Adamax,
    "NAdam": optim.NAdam,
    "RAdam": optim.RAdam,
    "OptimisticAdam": optim.OptimisticAdam,
    "AdaBelief": optim.AdaBelief,
    "AdEmaMix": optim.AdEMAMix,
    "Adopt": optim.ADOPT,
    "Adan": optim.Adan,
    "Yogi": optim.Yogi,
    "Sophia": optim.Sophia,
    "ScheduleFreeSgd": optim.ScheduleFreeSGD,
    "ScheduleFreeAdamW": optim.ScheduleFreeAdamW,
}


def text() -> str:
    """The text of the file."""

    def program(optimizer: Any) -> Any:
        choice = optim.ParameterGroup(optimizer, optimizer, {}, "bfloat16")
        return choice.program(choice.rule())

    return _core.print_generated([(name, program(make())) for name, make in SHIPPED.items()])


if __name__ == "__main__":
    PATH.write_text(text())
