"""Every rule, dtype and option of a step: the combinations that run by printed texts, to be compared with the host.

Combinations of which all texts are those of another one, launched alike, are not run again: see `distinct`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from steps import twin

from optimizers import OPTIMIZERS, slot_dtype_for
from oxigrad import optim
from oxigrad.optim import chain

DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
# Around the elements of a thread (2 to 16), of a tile, of codes with one scale, and of a chunk.
LENGTHS = (0, 1, 3, 15, 17, 255, 257, 1023, 1025, 4095, 4096, 4097, 8193)
# The fewest of them that have codes, the end of a thread's elements, and two chunks.
SOME_LENGTHS = (0, 3, 257, 4099)


@dataclasses.dataclass(frozen=True)
class Option:
    """An optimizer around the one of a rule, and how its kernels are launched: see `steps.Twin`."""

    around: Callable[[Any], Any] = lambda opt: opt
    launch: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: The dtype of gradients, if it is not that of the parameters.
    gradients: Any = None


# Each option by itself, then mixtures.
OPTIONS = {
    "plain": Option(),
    "unaligned": Option(launch={"shift": 1}),
    "step number on the device": Option(launch={"by_control": True}),
    "float32 gradients": Option(gradients=np.float32),
    "master": Option(lambda opt: chain(opt, master=True)),
    "kahan": Option(lambda opt: chain(opt, rounding="kahan")),
    "stochastic": Option(lambda opt: chain(opt, rounding="stochastic", seed=3)),
    "8bit slots": Option(lambda opt: chain(opt, slot_dtype=slot_dtype_for(opt, "8bit"))),
    "4bit slots": Option(lambda opt: chain(opt, slot_dtype=slot_dtype_for(opt, "4bit"))),
    "bfloat16 slots": Option(lambda opt: chain(opt, slot_dtype=slot_dtype_for(opt, "bfloat16"))),
    "guarded": Option(lambda opt: chain(opt, nonfinite="skip")),
    "loss scale": Option(lambda opt: chain(opt, loss_scale=optim.LossScale(16.0))),
    "accumulated": Option(lambda opt: chain(opt, accumulate=2)),
    "zeroed gradients": Option(lambda opt: chain(opt, zero_gradients=True)),
    "global norm": Option(lambda opt: chain(optim.ClipByGlobalNorm(0.5), opt)),
    "norm and value": Option(lambda opt: chain(optim.ClipByNorm(2.0), optim.ClipByValue(0.3), opt)),
    "maximized, decayed": Option(lambda opt: chain(optim.Maximize(), opt, optim.WeightDecay(0.1))),
    "regularized": Option(lambda opt: chain(optim.Regularize(l1=0.01, l2=0.1), opt)),
    "noise": Option(lambda opt: chain(optim.GradientNoise(0.1), opt, seed=4)),
    "EMA": Option(lambda opt: chain(opt, optim.EMA(0.9))),
    "SWA": Option(lambda opt: chain(opt, optim.SWA())),
    "Lookahead": Option(lambda opt: chain(opt, optim.Lookahead(2))),
    "codes, global norm, average": Option(
        lambda opt: chain(optim.ClipByGlobalNorm(0.5), opt, optim.EMA(0.9), slot_dtype=slot_dtype_for(opt, "8bit"))
    ),
    "master, float32 gradients, guard, average": Option(
        lambda opt: chain(opt, optim.SWA(), master=True, slot_dtype=slot_dtype_for(opt, "bfloat16"), nonfinite="skip"),
        gradients=np.float32,
    ),
    "stochastic, unaligned, zeroed gradients": Option(
        lambda opt: chain(
            opt, rounding="stochastic", slot_dtype=slot_dtype_for(opt, "bfloat16"), zero_gradients=True, seed=5
        ),
        launch={"shift": 1},
    ),
    "kahan, norm, Lookahead, accumulated": Option(
        lambda opt: chain(optim.ClipByNorm(2.0), opt, optim.Lookahead(2), rounding="kahan", accumulate=2)
    ),
}

# Why a combination is refused, by option and dtype, whatever the rule.
REFUSED = {
    ("float32 gradients", "float64"): "gradient has dtype float32, the parameter float64",
    ("master, float32 gradients, guard, average", "float64"): "gradient has dtype float32, the parameter float64",
}


@dataclasses.dataclass(frozen=True)
class Combination:
    """A rule, a dtype of parameters, and an option, by name."""

    rule: str
    dtype: str
    option: str

    def __str__(self) -> str:
        return f"{self.rule}, {self.dtype}, {self.option}"

    @property
    def launch(self) -> Mapping[str, Any]:
        """The arguments of the twin."""
        return OPTIONS[self.option].launch

    def optimizer(self) -> Any:
        opt = OPTIMIZERS[self.rule]()
        opt.seed = 0  # a part of a chain has none of its own
        return OPTIONS[self.option].around(opt)

    def run(self, opt: Any, lengths: Sequence[int], steps: int) -> None:
        """Takes steps of leaves of these lengths."""
        model = self._model(0, lengths)
        for step in range(steps):
            opt.update(model, self._model(step + 1, lengths, OPTIONS[self.option].gradients))

    def _model(self, seed: int, lengths: Sequence[int], dtype: Any = None) -> dict[str, np.ndarray]:
        draw = np.random.default_rng(seed)
        return {f"w{n}": draw.standard_normal(n).astype(dtype or DTYPES[self.dtype]) for n in lengths}

    def texts(self, lengths: Sequence[int] = SOME_LENGTHS, steps: int = 2) -> tuple[str, ...]:
        """The texts of all steps."""
        opt = self.optimizer()
        with twin(opt, None, **self.launch) as found:
            self.run(opt, lengths, steps)
        return tuple(found.texts)


def combinations(options: Iterable[str] = OPTIONS) -> Iterator[Combination]:
    """All that are not refused."""
    for option in options:
        for dtype in DTYPES:
            if (option, dtype) not in REFUSED:
                for rule in OPTIMIZERS:
                    yield Combination(rule, dtype, option)


def pairs() -> Iterator[Combination]:
    """Combinations with every pair of a rule, a dtype and an option."""
    for at, rule in enumerate(OPTIMIZERS):
        for number, option in enumerate(OPTIONS):
            taken = [dtype for dtype in DTYPES if (option, dtype) not in REFUSED]
            yield Combination(rule, taken[(at + number) % len(taken)], option)


def distinct(every: Iterable[Combination]) -> dict[Combination, tuple[str, ...]]:
    """The texts of the combinations with a text, or launches of it, that no earlier one has."""
    found, known = {}, set()
    for combination in every:
        texts = _texts(combination)
        new = {(text, *combination.launch) for text in texts} - known
        if new:
            known |= new
            found[combination] = texts
    return found


@functools.cache
def _texts(combination: Combination) -> tuple[str, ...]:
    return combination.texts()


def of_option(option: str) -> dict[Combination, tuple[str, ...]]:
    """The texts of the combinations of an option, but for those of which the option changes nothing."""
    found = distinct(combinations(dict.fromkeys(["plain", option])))
    return {combination: texts for combination, texts in found.items() if combination.option == option}


def take(combination: Combination, compile: Callable[[str], Any], lengths: Sequence[int], steps: int) -> int:
    """Takes steps on the host and by texts; returns how many arrays had the same bits."""
    opt = combination.optimizer()
    with twin(opt, compile, **combination.launch) as found:
        combination.run(opt, lengths, steps)
    return found.checked
