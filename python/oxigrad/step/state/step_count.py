"""The number of steps of an optimizer, and its validation in a state."""

from typing import Any, NoReturn

from oxigrad._core import MOST_STEPS, StateError, Variable
from oxigrad.ops.backends import REFUSALS, adapter_of, is_array, is_batched, size_of, to_host


class StepCount(int):
    """A number of steps. Calling it, as PyTorch's ``step()``, raises `TypeError`."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        """Raises `TypeError`, and says what takes a step."""
        raise TypeError(
            f"step is the number of steps taken, {int(self)}: expected opt.update(model, grads), or "
            "opt.minimize(loss, model), to take one"
        )


def check_step_count(value: Any, what: str) -> None:
    """Raises `StateError`, which begins with ``what``, for anything but a whole number from 0 to `MOST_STEPS`.

    It is a number or an array of one element, whose device is waited for. A variable and a traced array pass, and an
    array that cannot be read while its library compiles a program.
    """
    number: Any = value
    if isinstance(value, Variable) or is_batched(value):
        return
    if is_array(value):
        if adapter_of(value).is_traced(value):
            return
        try:
            number = to_host(value).item() if size_of(value.shape) == 1 else None
        except REFUSALS:
            return
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if is_number and 0 <= number <= MOST_STEPS and int(number) == number:
        return
    raise StateError(f"{what} {value!r}: expected a number of steps, which is whole and not negative")
