"""Random optimizers over random models: any layout gives the bits of a contiguous one, and steps are atomic.

The test goes through a fixed number of seeds, or with ``--fuzz-seconds=N`` through new ones for N seconds, in a process of its
own. ``PYTHONPATH=tests/tables python tests/fuzz/test_steps.py SEED`` runs one seed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from random_models import Watched, bfloat16, memory, read, torch
from random_steps import Event, Fault, Gradients, Run, random_gradients

import oxigrad as ox
from optimizers import by_rules
from oxigrad import optim, tree

SEEDS = 120
STEPS = 6
OURS = (
    ox.AliasError,
    ox.ArrayMemoryError,
    ox.DtypeError,
    ox.NonFiniteError,
    ox.RuleError,
    ox.ShapeError,
    ox.StateError,
    ox.StructureError,
)
# Tolerances for a rule that is called on arrays of another library, or that sums in another order.
TOLERANCES = {"float64": 1e-8, "float32": 2e-3, "float16": 0.1, "bfloat16": 0.3}


def snapshot(run: Run, grads: Any) -> dict[str, Any]:
    """All that a step could change."""
    found = {f"leaf {i}": (id(leaf), plain(leaf)) for i, leaf in enumerate(tree.leaves(run.model.tree))}
    given = [
        part for g in tree.leaves(grads) for part in ([g.values, g.indices] if isinstance(g, ox.SparseRows) else [g])
    ]
    found |= {f"gradient {i}": plain(g) for i, g in enumerate(given)}
    for number, (path, name, slot) in enumerate(run.slots()):
        found[f"slot {name} of {path} ({number})"] = plain(slot)
    counts = {"step": run.opt.step, "micro": run.opt._stepper.micro, "skipped": run.opt.skipped}
    return found | counts | {"scale": run.opt.scale}


def plain(leaf: Any) -> Any:
    """A leaf in a form that compares by its bytes."""
    leaf = getattr(leaf, "array", leaf)
    if isinstance(leaf, np.ndarray) or (torch and isinstance(leaf, torch.Tensor)):
        found = read(leaf)
        return found.dtype.name, found.shape, found.tobytes()
    return leaf


def check_unchanged(before: dict[str, Any], run: Run, grads: Any) -> None:
    after = snapshot(run, grads)
    for name, value in before.items():
        if name not in after or after[name] != value:
            raise Fault(f"a step that raised has changed {name}")


def check_error(error: Exception, run: Run, event: Event) -> None:
    """An error that the event may cause, of our classes, that names a key path."""
    if isinstance(error, KeyError) and error.args == ("thrown",):
        return
    if not isinstance(error, OURS):
        raise Fault(f"{type(error).__name__}: {error}") from error
    if event.raises == "never":
        raise Fault(f"refused: {type(error).__name__}: {error}") from error
    leaves, structure = tree.flatten(run.model.tree)
    if not any(str(structure.path(i)) in str(error) for i in range(len(leaves))):
        raise Fault(f"the error names no path: {type(error).__name__}: {error}") from error


def check_apart(run: Run, grads: Any) -> None:
    """Slots share memory with no parameter, no gradient and no other slot."""
    given = [g.values if isinstance(g, ox.SparseRows) else getattr(g, "array", g) for g in tree.leaves(grads)]
    users = [
        memory(x) for x in [*map(run.model.array, run.model.weights), *given] if x is not None and hasattr(x, "dtype")
    ]
    slots = [(f"{name} of {path}", memory(slot)) for path, name, slot in run.slots()]
    for number, (name, slot) in enumerate(slots):
        if any(np.may_share_memory(slot, x) and np.shares_memory(slot, x) for x in users):
            raise Fault(f"the slot {name} shares memory with a parameter or gradient")
        if any(np.may_share_memory(slot, other) for _, other in slots[number + 1 :]):
            raise Fault(f"the slot {name} shares memory with another")


def compare(what: str, found: Any, expected: Any, *, exact: bool, rtol: float) -> None:
    a, b = read(found), read(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        raise Fault(f"{what}: {a.dtype} {a.shape} in place of {b.dtype} {b.shape}")
    if a.dtype == bfloat16:
        a, b = a.astype(np.float32), b.astype(np.float32)
    if exact:
        same = (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
    else:
        finite = np.abs(b[np.isfinite(b)])
        with np.errstate(all="ignore"):
            same = np.isclose(a, b, rtol=rtol, atol=rtol * np.max(finite, initial=1e-3), equal_nan=True)
    if not np.all(same):
        at = tuple(map(int, np.argwhere(~same)[0]))
        raise Fault(f"{what}{list(at)}: {a[at]!r} in place of {b[at]!r}{'' if exact else ', about'}")


class Watch:
    """Compares the run with the flat model after each step."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.exact = True
        # Tolerances for coarse rounding, and for rounding that decides on a branch.
        self.comparable = True

    def look(self) -> None:
        run = self.run
        executors = run.executors | {p.executor.name for p in run.reference._stepper.plan.parameters}
        if executors <= {"host", "copy"}:
            return
        self.exact = False
        dtypes = {w.dtype for w in run.model.weights}
        rules = {c.rule().elementwise for c in run.opt._stepper.plan.groups}
        # The eigenvectors of a matrix of low rank are anyone's choice.
        degenerate = any("soap" in c.rule().name or "shampoo" in c.rule().name for c in run.opt._stepper.plan.groups)
        halves = (
            degenerate
            or run.opt.slot_dtype in ("8bit", "4bit", "float16", "bfloat16")
            or run.opt.rounding == "stochastic"
        )
        if halves or (False in rules and dtypes != {"float64"}):
            self.comparable = False

    def compare(self) -> None:
        self.look()
        run = self.run
        if not self.comparable:
            return
        coarse = max((w.dtype for w in run.model.weights), key=TOLERANCES.__getitem__)
        for weight in run.model.weights:
            rtol = TOLERANCES[coarse]
            compare(weight.text, run.model.array(weight), run.flat[weight.key], exact=self.exact, rtol=rtol)
        texts = {w.text: str(p) for w, p in zip(run.model.weights, tree.parameters(run.flat), strict=True)}
        for path, own in run.opt.slots.items():
            expected = run.reference.slots[texts[path]]
            if own.keys() != expected.keys():
                raise Fault(f"{path}: slots {[*own]} in place of {[*expected]}")
            for name, slot in own.items() if self.exact else ():
                other = expected[name]
                if isinstance(slot, optim.Quantized):
                    slot, other = slot.codes, other.codes
                compare(f"the slot {name} of {path}", slot, other, exact=True, rtol=0)


def versions(run: Run) -> dict[str, tuple[int, int, Any]]:
    """For each weight that is a tensor: which, how often PyTorch was told that it has changed, and its numbers."""
    found = [(w, run.model.array(w)) for w in run.model.weights if w.library == "torch"]
    return {w.text: (id(array), array._version, plain(array)) for w, array in found if array.numel()}


def take(run: Run, watch: Watch, log: list[str]) -> None:
    """One step of both, and all checks."""
    grads = random_gradients(run.draw, run.model, run.opt)
    event = run.event(grads)
    log.append(event.name)
    given = run.model.like(grads.leaves)
    before, counted, kept = snapshot(run, given), versions(run), (run.opt.step, run.opt._stepper.micro)
    error = None
    Watched.in_step = True
    try:
        with np.errstate(all="ignore"):
            run.model.tree = run.opt.update(run.model.tree, given)
    except Fault:
        raise
    except Exception as caught:  # noqa: BLE001 - any may be a fault
        error = caught
    finally:
        run.reached, Watched.hook, Watched.in_step = None, None, False
    if error is not None:
        check_error(error, run, event)
        check_unchanged(before, run, given)
        event.undo()
        log[-1] += f" ({type(error).__name__})"
        return
    if event.raises == "must":
        raise Fault("the step was not refused")
    event.undo()
    follow(run, grads)
    check_apart(run, given)
    if run.opt.step > kept[0]:
        for text, (key, version, numbers) in versions(run).items():
            if counted[text][:2] == (key, version) and counted[text][2] != numbers:
                raise Fault(f"{text}: PyTorch was not told that the tensor has changed")
    watch.compare()
    if run.opt.zero_gradients and run.opt.step + run.opt._stepper.micro > sum(kept):
        check_zeroed(run, given)


def check_zeroed(run: Run, given: Any) -> None:
    leaves, frozen = tree.leaves(given), run.opt._stepper.plan.frozen
    for weight in run.model.weights:
        for i in weight.leaves if weight.text not in frozen else ():
            if np.any(read(getattr(leaves[i], "array", leaves[i]))):
                raise Fault(f"the gradient of {weight.text} is not zeroed")


def follow(run: Run, grads: Gradients) -> None:
    """The same step of the flat model, and of the rule as a function where that is to give the same."""
    opt = run.reference
    state = opt.state_dict()
    is_called = (
        all(array.dtype == np.float64 for array in run.flat.values())
        and opt.sparse == "dense"
        and opt.slot_dtype is None
        and state["slots"]
        and not opt.zero_gradients
        and not any(isinstance(g, ox.SparseRows) for g in grads.plain.values())
    )
    expected = None
    with np.errstate(all="ignore"):
        if is_called:
            known = {key: state[key] for key in ("step", "micro", "slots")}
            with suppress(ox.RuleError):  # of rules with other totals
                expected, _ = by_rules(opt, run.flat, grads.plain, known)
        run.flat = opt.update(run.flat, grads.plain)
    counts = (opt.step, opt._stepper.micro, opt.skipped, opt.scale)
    if counts != (found := (run.opt.step, run.opt._stepper.micro, run.opt.skipped, run.opt.scale)):
        raise Fault(f"step, micro, skipped and scale are {found} in place of {counts}")
    for key, value in (expected or {}).items():
        compare(f"{key}, as the rule has it,", run.flat[key], value, exact=False, rtol=1e-9)


def fault(seed: int) -> str | None:
    """The fault of the steps of a seed: None if there is none."""
    log: list[str] = []
    run: Run | None = None
    try:
        run = Run(seed)
        watch = Watch(run)
        for _ in range(STEPS):
            take(run, watch, log)
    except Exception as error:  # noqa: BLE001 - any is a fault
        what = str(error) if isinstance(error, Fault) else traceback.format_exc()
        about = f"\n  {run.opt!r}\n  {run.model}" if run else ""
        return (
            f"PYTHONPATH=tests/tables python tests/fuzz/test_steps.py {seed}: {what}{about}\n  steps: {', '.join(log)}"
        )
    return None


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_for(seconds: float, first: int) -> None:
    """New seeds for so long, each named before it runs, so that a crash has a seed."""
    end, seed, wrong = time.monotonic() + seconds, first, 0
    while time.monotonic() < end and wrong < 20:
        _say(f"seed {seed}")
        if found := fault(seed):
            _say(f"FAULT {found}")
            wrong += 1
        seed += 1
    sys.exit(wrong > 0)


def test_random_steps(request: pytest.FixtureRequest) -> None:
    seconds = request.config.getoption("--fuzz-seconds")
    if not seconds:
        assert not (found := [text for seed in range(SEEDS) if (text := fault(seed))]), "\n".join(found)
        return
    command = [sys.executable, "-X", "faulthandler", "-W", "error", __file__, "--seconds", str(seconds), "1000000"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, (ran.returncode, ran.stdout[-3000:], ran.stderr[-3000:])


if __name__ == "__main__":
    if sys.argv[1] == "--seconds":
        run_for(float(sys.argv[2]), int(sys.argv[3]))
    elif found := fault(int(sys.argv[1])):
        sys.exit(found)
