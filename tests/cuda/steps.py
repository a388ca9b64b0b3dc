"""Steps of an optimizer on the host, each taken by the text of its programs too, on copies of all arrays.

Everything that a step writes is compared: gradients, parameters, slots, scales, slots of one number, and whether a guard stopped it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
from executor import Library, compile_texts
from group import Group, Leaf, Step

from oxigrad import _core

Text = tuple[Any, int, tuple[str, ...], int, int, bool]


def dtype_of(array: np.ndarray) -> str:
    return array.dtype.name


def placed(array: np.ndarray, shift: int) -> np.ndarray:
    """A copy of the array that ends with its memory, ``shift`` elements after an address that is aligned to 16 bytes."""
    before = shift * array.dtype.itemsize
    memory = np.empty(array.nbytes + before, np.uint8)
    assert memory.ctypes.data % 16 == 0, "of malloc"
    made = memory[before:].view(array.dtype)
    made[...] = array.reshape(-1)
    return made


def bits(array: np.ndarray) -> bytes:
    """The bytes of an array, with one NaN for all."""
    array = np.array(array).reshape(-1)
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        array[np.isnan(array)] = np.nan
    return array.tobytes()


@dataclasses.dataclass
class Recorded:
    """A parameter as `_core.HostParameter` states it."""

    path: str
    position: int
    array: np.ndarray
    slots: Sequence[tuple[str, Any]]
    numbers: Sequence[tuple[str, np.ndarray]]
    catches_up: bool
    stochastic: bool
    program: int
    scalar_set: int
    first: int
    whole: int

    def arrays(self, p: np.ndarray, g: np.ndarray) -> list[np.ndarray]:
        return [g, p, *(slot[0] if isinstance(slot, tuple) else slot for _, slot in self.slots)]

    def dtypes(self, p: np.ndarray, g: np.ndarray) -> tuple[str, ...]:
        """The dtypes of the arrays as a program has them: codes that share bytes are of four bits."""
        slots = ["uint4" if isinstance(slot, tuple) and len(slot) > 2 else "" for _, slot in self.slots]
        return tuple(kind or dtype_of(array) for kind, array in zip(["", "", *slots], self.arrays(p, g), strict=True))

    def scales(self) -> list[np.ndarray]:
        return [slot[1] for _, slot in self.slots if isinstance(slot, tuple)]


@dataclasses.dataclass
class Twin:
    """The `_core.Stepper` of an optimizer, and beside it the steps by ``compile``d texts.

    Without ``compile`` the texts are only collected. ``by_control`` takes the number of the step from memory of the device.
    """

    owner: Any
    core: Any
    known: dict[int, Recorded]
    compile: Callable[[str], Library] | None
    by_control: bool = False
    shift: int = 0
    texts: dict[str, None] = dataclasses.field(default_factory=dict)
    sources: dict[Text, Any] = dataclasses.field(default_factory=dict)
    prepared: list[Recorded] = dataclasses.field(default_factory=list)
    checked: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    @property
    def count(self) -> int:
        return self.core.count

    @count.setter
    def count(self, value: int) -> None:
        self.core.count = value

    @property
    def micro(self) -> int:
        return self.core.micro

    @micro.setter
    def micro(self, value: int) -> None:
        self.core.micro = value

    def prepare(self, parameters: Sequence[Any]) -> None:
        self.prepared = [self.known[id(parameter)] for parameter in parameters]
        self.core.prepare(parameters)

    def step(self, model: Any, written: Any, gradients: Any, **stated: Any) -> Any:
        programs, seed = stated["programs"], stated["seed"]
        steps = self._device(written, gradients, programs, seed)
        if self.compile is None:
            return self.core.step(model, written, gradients, **stated)
        step, sets, copies = steps
        done = step.run(sets)
        found = self.core.step(model, written, gradients, **stated)
        if isinstance(found, _core.Misfit):
            return found
        assert done == (found is not None)
        for parameter, p, g in zip(self.prepared, written, gradients, strict=True):
            host = [*parameter.arrays(p, g), *parameter.scales(), *(number for _, number in parameter.numbers)]
            names = ["gradient", "parameter", *(name for name, _ in parameter.slots)]
            for at, (own, copy) in enumerate(zip(host, copies[parameter.path], strict=True)):
                name = names[at] if at < len(names) else f"scale or number {at - len(names)}"
                assert bits(own) == bits(copy), (parameter.path, name, own.reshape(-1)[:8], copy[:8])
                self.checked += 1
        return found

    def _source(self, parameter: Recorded, program: Any, dtypes: tuple[str, ...], scalars: int) -> Any:
        key = (program, scalars, dtypes, len(parameter.numbers), parameter.stochastic)
        if key not in self.sources:
            self.sources[key] = program.cuda(
                dtypes, scalars=scalars, numbers=len(parameter.numbers), stochastic=parameter.stochastic
            )
            self.texts[self.sources[key].text] = None
        return self.sources[key]

    def _device(self, written: Any, gradients: Any, programs: Any, seed: int) -> Any:
        leaves: dict[int, tuple[Any, list[Leaf], list[int], int]] = {}
        copies, batches, term = {}, [], 0
        for number, (program, sets) in enumerate(programs):
            for parameter, p, g in zip(self.prepared, written, gradients, strict=True):
                if parameter.program != number:
                    continue
                arrays = parameter.arrays(p, g)
                source = self._source(parameter, program, parameter.dtypes(p, g), len(sets[0]))
                own = [placed(array, self.shift) for array in arrays]
                scales = [placed(array, 0) for array in parameter.scales()]
                numbers = [placed(array, 0) for _, array in parameter.numbers]
                copies[parameter.path] = [*own, *scales, *numbers]
                leaf = Leaf(own, scales, numbers, parameter.position, parameter.scalar_set)
                group = leaves.setdefault(id(source), (source, [], [], number))
                group[1].append(leaf)
                group[2].append(term)
                term += 1
            batches.append(term)
        if self.compile is None:
            return None
        groups = [
            Group(source, own, self.compile(source.text).launch, terms) for source, own, terms, _ in leaves.values()
        ]
        step = Step(groups, seed=seed, number=self.core.count + 1, batches=batches, by_control=self.by_control)
        chosen = [programs[number] for *_, number in leaves.values()]
        values = [
            sets if step.is_on_device(group) else [program.scalars(own) for own in sets]
            for group, (program, sets) in zip(groups, chosen, strict=True)
        ]
        return step, values, copies


@contextlib.contextmanager
def twin(opt: Any, compile: Callable[[str], Library] | None, **options: Any) -> Iterator[Twin]:
    """Steps of the optimizer, in the context, are taken by a `Twin`."""
    known: dict[int, Recorded] = {}
    kept: list[Any] = []
    make = _core.HostParameter

    def recorded(**stated: Any) -> Any:
        made = make(**stated)
        kept.append(made)
        known[id(made)] = Recorded(**stated)
        return made

    stepper = opt._stepper
    found = Twin(opt, stepper.core, known, compile, **options)
    with mock.patch.object(_core, "HostParameter", recorded):
        stepper.core = stepper.counts._core = stepper.table._core = found
        yield found
        stepper.core = stepper.counts._core = stepper.table._core = found.core


def compiled(texts: Sequence[str], *flags: str) -> dict[str, Library]:
    """The libraries of texts, compiled together."""
    return dict(zip(texts, compile_texts(list(texts), *flags), strict=True))
