"""The programs of a step, and the parameters that the core updates by them."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from oxigrad import _core
from oxigrad._names import path_name
from oxigrad.rules.core.slots import Slot

Scalars = TypeVar("Scalars")


class ProgramTable(Generic[Scalars]):
    """The distinct programs of a step, each with its distinct sets of scalars."""

    def __init__(self) -> None:
        self.programs: list[tuple[_core.Program, list[Scalars]]] = []
        self._places: dict[Hashable, tuple[int, int]] = {}

    def place(self, program: "_core.Program", key: Hashable, scalars: Callable[[], Scalars]) -> tuple[int, int]:
        """The index of a program, and that of its set of scalars with this key; adds both where they are missing."""
        if (id(program), key) not in self._places:
            number = next((k for k, (other, _) in enumerate(self.programs) if other is program), len(self.programs))
            if number == len(self.programs):
                self.programs.append((program, []))
            sets = self.programs[number][1]
            self._places[id(program), key] = number, len(sets)
            sets.append(scalars())
        return self._places[id(program), key]


def host_parameter(
    path: str,
    position: int,
    array: Any,
    slots: Iterable[tuple[Slot, Any]],
    place: tuple[int, int],
    *,
    catches_up: bool = False,
    stochastic: bool = False,
    first: int = 0,
    whole: int | None = None,
) -> "_core.HostParameter":
    """A parameter that the core updates in place, with the values of its slots, and its place in a `ProgramTable`.

    Of a slice, ``first`` is the index of its first element in the parameter, which has ``whole`` elements.
    """
    arrays: list[tuple[str, Any]] = []
    numbers: list[tuple[str, Any]] = []
    for slot, value in slots:
        (numbers if slot.is_number else arrays).append((slot.name, value))
    return _core.HostParameter(
        path=path_name(path),
        position=position,
        array=array,
        slots=arrays,
        numbers=numbers,
        catches_up=catches_up,
        stochastic=stochastic,
        program=place[0],
        scalar_set=place[1],
        first=first,
        whole=whole,
    )


def answer(
    parameters: "list[_core.HostParameter]",
    written: tuple[Any, ...],
    gradients: tuple[Any, ...],
    *,
    programs: Any,
    count: int = 0,
    seed: int = 0,
    touched: Any = (),
    writes: "_core.Writes | None" = None,
) -> Any:
    """The answer of a step after ``count`` ones on arrays in host memory, by a stepper of its own.

    See `_core.Stepper.step`.
    """
    core = _core.Stepper()
    core.count = count
    core.prepare(parameters)
    return core.step(True, written, gradients, programs=programs, seed=seed, touched=touched, writes=writes)


def step_once(*arrays: Any, **stated: Any) -> Any:
    """As `answer`; raises the error of a misfit."""
    return checked(answer(*arrays, **stated))


def checked(done: Any) -> Any:
    """The result of a step of the core; raises the error of a misfit."""
    if isinstance(done, _core.Misfit):
        raise done.error
    return done
