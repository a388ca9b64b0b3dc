"""A parameter of an optimizer, in a step that is resolved."""

import dataclasses
from typing import Any

from oxigrad.stepping.parameters.executor import Executor
from oxigrad.torch.choice import Choice


@dataclasses.dataclass
class Parameter:
    """A parameter that has a gradient: its number among all, its state, its rule, and its executor: `HOST`, `DEVICE` or `RULE`.

    ``order`` is that in which a kernel takes its elements: see `oxigrad.torch.step.device.order_of_kernel`.
    """

    path: str
    position: int
    tensor: Any
    own: dict[str, Any]
    choice: Choice
    executor: Executor
    step: int = 0
    order: str = ""
    scalar_set: tuple[int, int] = (0, 0)
