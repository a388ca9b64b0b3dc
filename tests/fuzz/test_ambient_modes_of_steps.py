"""Random optimizers of `oxigrad.torch`, each step of which is taken in a random mode: the bits are those of plain steps.

The test goes through a fixed number of seeds, or with ``--fuzz-seconds=N`` through new ones for N seconds.
"""

from __future__ import annotations

import contextlib
import random
import time
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("oxigrad.torch")

from ambient_modes import torch_modes  # noqa: E402
from torch_problems import OURS, equal, gradients, loss_for, loss_of, parameters, shapes_for, states, values  # noqa: E402

SEEDS = 40
MODES = {**torch_modes(), "none": contextlib.nullcontext}
NAMES = [name for name in OURS.names if name != "LBFGS"]
LARGE = ((70, 64), (3, 5))


class Case:
    """An optimizer with options, parameters, and the mode of each step."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.name = draw.choice(NAMES)
        self.is_sparse = self.name == "SparseAdam"
        self.dtype = draw.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16])
        self.options = dict(self._options(draw))
        self.shapes = draw.choice([shapes_for(self.name), LARGE])
        self.modes = [draw.choice([*MODES]) for _ in range(4)]
        if self.shapes is LARGE and not OURS.type(self.name).entry.rule.elementwise:  # type: ignore[attr-defined]
            # Products of PyTorch depend on the number of threads.
            self.modes = ["none" if mode == "threads" else mode for mode in self.modes]
        if self.name == "ASGD":  # its rates are numbers of PyTorch's default dtype, as in PyTorch's class
            self.modes = ["none" if mode == "default float64" else mode for mode in self.modes]

    def _options(self, draw: random.Random) -> Any:
        choices: dict[str, list[Any]] = {
            "state_dtype": ["8bit", "4bit", "bfloat16", "float32"],
            "rounding": ["stochastic", "kahan"],
            "maximize": [] if self.name in ("Muon", "SparseAdam", "Adafactor") else [True],
        }
        if not self.is_sparse:
            choices |= {"max_norm": [0.3], "in_backward": [True], "state_device": ["host"]}
        for name, some in choices.items():
            if some and draw.random() < 0.2:
                yield name, draw.choice(some)

    def make(self, params: Any) -> Any:
        """The optimizer, without a dtype of moments that it refuses."""
        try:
            return OURS.make(self.name, params, **self.options)
        except ValueError:
            self.options.pop("state_dtype", None)
            return OURS.make(self.name, params, **self.options)

    def run(self, modes: list[str]) -> tuple[list[Any], list[Any]]:
        """The parameters and the state after a step in each of the modes."""
        params = parameters(self.shapes, self.dtype)
        opt = self.make(params)
        for step, mode in enumerate(modes):
            if self.options.get("in_backward"):
                loss = loss_of(params, step)
                # PyTorch has no backward in the inference mode.
                with MODES["none" if mode == "inference" else mode]():
                    loss.backward()
            else:
                for p, g in zip(params, gradients(params, step), strict=True):
                    p.grad = g.to_sparse() if self.is_sparse else g
            with MODES[mode]():
                opt.step(**loss_for(opt))
            opt.zero_grad()
        return values(params), [state if state.ndim else state.double() for state in states(opt)]


def test_every_step_in_a_mode_of_its_own(request: pytest.FixtureRequest) -> None:
    seconds = request.config.getoption("--fuzz-seconds")
    start = time.time_ns() // 1000 if seconds else 0
    end, seed, checked = time.monotonic() + (seconds or 0.0), start, 0
    while time.monotonic() < end if seconds else seed < SEEDS:
        case = Case(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                plain = case.run(["none"] * len(case.modes))
            except (RuntimeError, TypeError, ValueError):  # options that exclude each other
                plain = None
            found = None if plain is None else case.run(case.modes)
        if plain is not None and found is not None:
            checked += 1
            assert equal(found[0], plain[0]), (seed, case.name, case.options, case.modes)
            assert len(found[1]) == len(plain[1])
            assert all(torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in zip(found[1], plain[1], strict=True)), (
                seed
            )
        seed += 1
    assert checked > (seed - start) // 2
