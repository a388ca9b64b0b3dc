"""Ways of stepping, for interrupts in the middle of a step: optimizers of trees, of groups and of pytrees, and wrappers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from interrupts import Way

from oxigrad import distributed, optim, schedules, xp

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

SHAPES = {"a": (3, 4), "b": (5, 2), "c": (4, 3)}


def drawn(number: int) -> dict[str, np.ndarray]:
    """Arrays of normal numbers."""
    generator = np.random.default_rng(number)
    return {name: generator.standard_normal(shape) for name, shape in SHAPES.items()}


class OfTree(Way):
    """An optimizer of `oxigrad.optim`."""

    def __init__(self, make: Callable[[], Any], how: str = "update", as_array: Callable[[Any], Any] = np.array) -> None:
        self.opt, self.how = make(), how
        self.model = {name: as_array(x) for name, x in drawn(0).items()}
        self.batch: dict[str, Any] = {}
        self.as_array = as_array

    def step(self, number: int) -> None:
        self.batch = drawn(number + 1)
        if self.how == "update":
            self.model = self.opt.update(self.model, {n: self.as_array(g) for n, g in self.batch.items()})
        else:
            options = {} if self.how == "minimize" else {self.how: True}
            self.opt.minimize(self.loss, self.model, **options)

    def loss(self, model: Any) -> Any:
        return sum(xp.sum((model[name] - 1.0) ** 2 * self.weight(name)) for name in SHAPES)

    def weight(self, name: str) -> Any:
        return 1.0

    def state(self) -> Any:
        stepper = self.opt
        slots = {path: dict(own) for path, own in stepper.slots.items()} if stepper.step else {}
        counts = {"step": stepper.step, "micro": stepper._stepper.micro, "skipped": stepper.skipped}
        return {**self.model, **{f"{path} {n}": x for path, own in slots.items() for n, x in own.items()}, **counts}

    @property
    def completes(self) -> bool:
        return self.how != "in_backward"

    def names(self) -> list[str]:
        return [*SHAPES]

    def ahead(self) -> list[str]:
        return self.opt.ahead

    def complete(self) -> None:
        if self.ahead():
            self.opt.flush(self.model)


def on_arrays(xp, p, g, m, *, learning_rate=0.1):
    m = 0.9 * m + g
    return p - learning_rate * m, m


OnArrays = optim.define(on_arrays, "OnArrays", elementwise=False)


def of_trees() -> dict[str, Callable[[], Way]]:
    """The ways of `oxigrad.optim`."""
    adam = lambda **options: optim.Adam(0.1, **options)  # noqa: E731
    chain = lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(schedules.linear(0.1, 0.0, 9)), optim.EMA(0.9))  # noqa: E731
    partition = lambda: optim.partition({"a": optim.Adam(0.1), "*": OnArrays()})  # noqa: E731
    return {
        "adam": lambda: OfTree(adam),
        "chain": lambda: OfTree(chain),
        "partition": lambda: OfTree(partition),
        "rule on arrays": lambda: OfTree(OnArrays),
        "muon": lambda: OfTree(lambda: optim.Muon(0.1)),
        "accumulated": lambda: OfTree(lambda: adam(accumulate=2)),
        "loss scale": lambda: OfTree(lambda: adam(loss_scale=optim.LossScale(4.0)), "minimize"),
        "skipping": lambda: OfTree(lambda: adam(nonfinite="skip")),
        "minimize": lambda: OfTree(chain, "minimize"),
        "record": lambda: OfTree(adam, "record"),
        "in_backward": lambda: OfTree(adam, "in_backward"),
        "in_backward of rules": lambda: OfTree(partition, "in_backward"),
        "optax": OfPytrees,
        "sam": lambda: OfTree(lambda: optim.SAM(optim.Adam(0.1)), "minimize"),
        "lbfgs": lambda: OfTree(lambda: optim.LBFGS(max_iterations=3), "minimize"),
    }


class OfWrapper(OfTree):
    """A wrapper of `oxigrad.distributed`, with one worker."""

    def state(self) -> Any:
        opt = self.opt
        state = opt.state_dict() if opt.step or getattr(opt, "pending", 0) else {"slots": {}, "remembered": {}}
        slots = {f"{path} {n}": x for path, own in state["slots"].items() for n, x in own.items()}
        remembered = {f"remembered {n}": str(x) for n, x in state["remembered"].items()}
        (report,) = opt.report()
        counts = {"step": opt.step, "accepted": report.accepted, "dropped": report.dropped}
        return {**self.model, **slots, **remembered, **counts}

    def ahead(self) -> list[str]:
        return []


class OfStatistics(OfWrapper):
    """K-FAC, whose steps have the statistics of a layer."""

    def step(self, number: int) -> None:
        x = drawn(number + 1)["c"]
        self.opt.minimize(lambda model: xp.mean((x @ model["a"] - 1.0) ** 2) + self.loss(model) / 100, self.model)


def of_wrappers() -> dict[str, Callable[[], Way]]:
    """The wrappers of `oxigrad.distributed`, with one worker."""
    adam = lambda: optim.Adam(0.1)  # noqa: E731
    sgd = lambda: optim.SGD(0.1)  # noqa: E731
    makes: dict[str, Callable[[], Any]] = {
        "data parallel": lambda: distributed.DataParallel(adam()),
        "data parallel accumulated": lambda: distributed.DataParallel(adam(), local_batches=2),
        "data parallel in shards": lambda: distributed.DataParallel(adam(), shard_state=True),
        "large batch": lambda: distributed.LargeBatch(adam(), 2),
        "large batch of one": lambda: distributed.LargeBatch(adam()),
        "compressed": lambda: distributed.DeepGradientCompression(sgd(), 0.25, momentum=0.9, min_size=1),
        "kfac": lambda: distributed.KFAC(sgd(), damping=0.01),
        "model average": lambda: distributed.ModelAverage(adam(), 1),
        "model average outer": lambda: distributed.ModelAverage(adam(), 1, outer=optim.SGD(0.7, momentum=0.9)),
        "model average late": lambda: distributed.ModelAverage(adam(), 2, delay=1),
        "model average of slots": lambda: distributed.ModelAverage(adam(), 1, average_slots=True),
        "elastic": lambda: distributed.ElasticAverage(adam(), 1, moving_rate=0.25),
        "elastic at once": lambda: distributed.ElasticAverage(adam(), 1, moving_rate=0.25, synchronous=True),
        "replicas": lambda: distributed.SyncReplicas(adam(), 1),
        "softsync": lambda: distributed.Softsync(adam(), 1),
        "drop stale": lambda: distributed.DropStale(adam(), 0),
    }
    ways: dict[str, Callable[[], Way]] = {name: lambda make=make: OfWrapper(make) for name, make in makes.items()}
    ways["kfac"] = lambda: OfStatistics(makes["kfac"], "minimize")  # whose update needs statistics
    ways["replicas minimize"] = lambda: OfWrapper(makes["replicas"], "minimize")
    ways["large batch minimize"] = lambda: OfWrapper(makes["large batch"], "minimize")
    return ways


class OfPytrees(Way):
    """A transformation of `oxigrad.optax`, called on arrays: a step is an assignment of its results."""

    def __init__(self) -> None:
        self.transformation = importlib.import_module("oxigrad.optax").adam(0.1)
        self.model = drawn(0)
        self.held = self.transformation.init(self.model)

    def step(self, number: int) -> None:
        updates, held = self.transformation.update(drawn(number + 1), self.held, self.model)
        model = {name: p + np.asarray(updates[name]) for name, p in self.model.items()}
        vars(self).update(model=model, held=held)

    def state(self) -> dict[str, Any]:
        return dict(self.model)

    def names(self) -> list[str]:
        return [*SHAPES]


# --- tensors ---------------------------------------------------------------------------------------------------------------

# Parameters that take several pieces, and one that is a part of one.
LARGE = {"a": (30, 40), "b": (3, 5), "c": (40, 15)}


class OfTensors(Way):
    """An optimizer of `oxigrad.torch`, named by class and options; gradients are assigned, or those of a backward ``in_backward``."""

    def __init__(self, name: str, **options: Any) -> None:
        self.params = [torch.nn.Parameter(tensor(0, shape)) for shape in LARGE.values()]
        self.opt = getattr(importlib.import_module("oxigrad.torch"), name)(self.params, **options)
        self.completes = not options.get("in_backward")
        self.steps_in_backward = options.get("in_backward", False)
        self.is_clipped = "max_norm" in options

    def step(self, number: int) -> None:
        self.opt.zero_grad()
        if not self.steps_in_backward:
            for i, p in enumerate(self.params):
                p.grad = tensor(number + 1 + 100 * i, p.shape)
        else:
            if self.is_clipped:
                with self.opt.norm_pass():
                    self.loss(number).backward()
            with self.opt.no_step():
                pass
            self.loss(number).backward()
        self.opt.step()

    def loss(self, number: int) -> Any:
        return torch.stack([(p * tensor(number + 1 + 100 * i, p.shape)).sum() for i, p in enumerate(self.params)]).sum()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, p in zip(self.names(), self.params, strict=True):
            found[name] = p
            own = self.opt.state.get(p, {})
            if int(own.get("step", 1)) and any(map(torch.any, own.values())):
                found |= {f"{name} {key}": value for key, value in own.items()}
        return found | {"noise_step": self.opt.param_groups[0].get("noise_step", 0)}

    def names(self) -> list[str]:
        return [f"param_groups[0]['params'][{i}]" for i in range(len(LARGE))]

    def ahead(self) -> list[str]:
        return self.opt.ahead

    def complete(self) -> None:
        if self.steps_in_backward:
            self.opt.zero_grad()
            if self.ahead():
                self.opt.step()
            elif self.is_clipped:
                with suppress(RuntimeError):  # for a norm that was measured, and not used
                    self.opt.step()
        else:
            self.opt.synchronize()


def tensor(seed: int, shape: Any) -> Any:
    """A tensor of normal numbers."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(tuple(shape)))


def of_tensors(folder: Path) -> dict[str, Callable[[], Way]]:
    """The ways of `oxigrad.torch`, with files in a folder."""
    memory = lambda **options: importlib.import_module("oxigrad.torch").HostMemory(piece=2048, **options)  # noqa: E731
    file = folder / "state.safetensors"
    return {
        "AdamW": lambda: OfTensors("AdamW"),
        "NAdam clipped": lambda: OfTensors("NAdam", max_norm=1.0),
        "Muon": lambda: OfTensors("Muon"),
        "stochastic": lambda: OfTensors("AdamW", state_dtype="8bit", rounding="stochastic"),
        "host": lambda: OfTensors("AdamW", state_device=memory()),
        "host clipped": lambda: OfTensors("AdamW", state_device=memory(), max_norm=1.0),
        "host fraction": lambda: OfTensors("AdamW", state_device=memory(fraction=0.5)),
        "host rules": lambda: OfTensors("Muon", state_device=memory()),
        "host together": lambda: OfTensors("Prodigy", state_device=memory()),
        "file": lambda: OfTensors("AdamW", state_device=file),
        "file clipped": lambda: OfTensors("NAdam", state_device=file, max_norm=1.0),
        "in_backward": lambda: OfTensors("AdamW", in_backward=True),
        "in_backward clipped": lambda: OfTensors("AdamW", in_backward=True, max_norm=1.0),
        "in_backward host": lambda: OfTensors("AdamW", in_backward=True, state_device=memory()),
        "in_backward file": lambda: OfTensors("AdamW", in_backward=True, state_device=file),
    }
