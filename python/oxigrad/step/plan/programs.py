"""The programs of a step, and the parameters that the core updates by them."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias

from oxigrad import _core
from oxigrad._names import path_name
from oxigrad.rules.core.slots import Slot

# The programs of a step, each with its sets of scalars.
Programs: TypeAlias = "list[tuple[_core.Program, list[list[float]]]]"


def lay_out(
    keyed: "Iterable[tuple[_core.Program | None, Hashable]]", scalars: Callable[[int], list[float]]
) -> tuple[Programs, list[tuple[int, int]]]:
    """The distinct programs with their sets of scalars, and for each item the index of its program and of its set.

    An item is a program, None where rules are called, and a key. ``scalars`` maps the number of an item to its set of
    scalars, of which each key has one.
    """
    programs: dict[int, tuple[_core.Program, list[list[float]]]] = {}
    places: dict[Hashable, tuple[int, int]] = {}
    layout = []
    for at, (program, key) in enumerate(keyed):
        if program is not None and (id(program), key) not in places:
            _, sets = programs.setdefault(id(program), (program, []))
            places[id(program), key] = [*programs].index(id(program)), len(sets)
            sets.append(scalars(at))
        layout.append(places.get((id(program), key), (0, 0)))
    return [*programs.values()], layout


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
    """A parameter that the core updates in place, with the values of its slots, and its place by `lay_out`.

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


def measured(
    core: "_core.Stepper",
    written: tuple[Any, ...],
    gradients: tuple[Any, ...],
    gather: Callable[[bytes], bytes],
    programs: Programs,
    seed: int,
) -> "_core.Totals":
    """The totals of the parameters that are prepared, from the bytes of partial sums that ``gather`` returns.

    They lack sums where the arrays do not fit: the step answers so, too.
    """
    totals = core.totals(programs)
    for _ in range(totals.phases):
        partials = core.measure(written, gradients, programs=programs, seed=seed, totals=totals)
        if isinstance(partials, _core.Misfit):
            break
        totals.fold(gather(b"".join(partials)))
    return totals


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
    totals: "_core.Totals | None" = None,
) -> Any:
    """The answer of a step after ``count`` ones on arrays in host memory, by a stepper of its own.

    See `_core.Stepper.step`.
    """
    core = _core.Stepper()
    core.count = count
    core.prepare(parameters)
    stated = {"programs": programs, "seed": seed, "touched": touched, "writes": writes, "totals": totals}
    return core.step(True, written, gradients, **stated)


def step_once(*arrays: Any, **stated: Any) -> Any:
    """As `answer`; raises the error of a misfit."""
    return checked(answer(*arrays, **stated))


def checked(done: Any) -> Any:
    """The result of a step or a measure of the core; raises the error of a misfit."""
    if isinstance(done, _core.Misfit):
        raise done.error
    return done
