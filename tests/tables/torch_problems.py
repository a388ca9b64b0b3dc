"""Parameters and gradients for optimizers with the interface of ``torch.optim``, and the libraries that have such optimizers."""

from __future__ import annotations

import dataclasses
import importlib
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
import torch

import oxigrad as ox
from oxigrad.optim.table.row import TABLE

SHAPES: tuple[tuple[int, ...], ...] = ((4, 3), (3,), ())
MATRICES: tuple[tuple[int, ...], ...] = ((4, 3), (2, 5))


class NotOffered(Exception):
    """The library lacks the feature."""


@dataclasses.dataclass(frozen=True)
class Library:
    """A library of optimizers: its module, and the class and arguments of each feature that torch has no name for."""

    name: str
    module: str
    classes: str = ""
    options: Mapping[str, tuple[str, Mapping[str, Any]]] = dataclasses.field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of its optimizers."""
        if self.classes:
            return self.classes.split()
        module = importlib.import_module(self.module)
        found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
        optimizer = torch.optim.Optimizer
        return [
            n
            for n, value in found.items()
            if isinstance(value, type) and issubclass(value, optimizer) and not n.endswith("Optimizer")
        ]

    def type(self, name: str) -> type[torch.optim.Optimizer]:
        """A class by name."""
        try:
            return getattr(importlib.import_module(self.module), name)
        except AttributeError:
            raise NotOffered(name) from None

    def make(self, name: str, params: Any, **options: Any) -> Any:
        """An optimizer of this class."""
        return self.type(name)(params, **options)

    def with_option(self, option: str) -> Callable[..., Any]:
        """A factory of the optimizer with a feature; raises `NotOffered` if the library lacks it."""
        if option not in self.options:
            raise NotOffered(option)
        name, options = self.options[option]
        return lambda params, **others: self.make(name, params, **options, **others)


OURS = Library(
    "oxigrad.torch",
    "oxigrad.torch",
    options={
        "float32 state": ("AdamW", {"state_dtype": "float32"}),
        "8-bit state": ("AdamW", {"state_dtype": "8bit"}),
        "master weights": ("AdamW", {"master": True}),
        "compensated": ("AdamW", {"rounding": "kahan"}),
        "stochastic rounding": ("AdamW", {"rounding": "stochastic"}),
        "scaled gradients": ("AdamW", {"amp_fused": True}),
        "schedule-free": ("ScheduleFreeAdamW", {}),
    },
)
# Without steps of one gradient a parameter: L-BFGS evaluates the loss, and gradients of SparseAdam are rows.
OTHER_STEPS = {"LBFGS", "SparseAdam"}


def _needs_all_gradients(name: str) -> bool:
    rule = TABLE[name].optimizer._rule
    return bool(rule.totals) or "loss" in rule.supplied


# Their rules sum over all parameters, or read the loss.
TOGETHER = {name for name in TABLE.keys() - OTHER_STEPS if _needs_all_gradients(name)} & {*OURS.names}
TORCH = Library(
    "torch", "torch.optim", options={"scaled gradients": ("AdamW", {"fused": True}), "float32 state": ("AdamW", {})}
)
BITSANDBYTES = Library(
    "bitsandbytes",
    "bitsandbytes.optim",
    "AdamW AdamW8bit Adam RMSprop Adagrad Lion LAMB",  # SGD and LARS have no defaults
    {"8-bit state": ("AdamW8bit", {}), "float32 state": ("AdamW", {})},
)


def drawn(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32, device: Any = None
) -> torch.Tensor:
    """Normal numbers, the same on every device, on the default one or another."""
    place = torch.get_default_device() if device is None else device
    return torch.randn(shape, generator=generator, dtype=dtype, device="cpu").to(place)


def parameters(
    shapes: Iterable[tuple[int, ...]] = SHAPES, dtype: torch.dtype = torch.float32, seed: int = 0
) -> list[torch.nn.Parameter]:
    """Parameters of normal values, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(drawn(shape, generator).to(dtype)) for shape in shapes]


def gradients(params: Sequence[torch.Tensor], step: int) -> list[torch.Tensor]:
    """Normal gradients of one step, the same for the same step."""
    generator = torch.Generator().manual_seed(1000 + step)
    return [_normal(p, generator) for p in params]


def _normal(p: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    dtype = torch.complex64 if p.is_complex() else torch.float32
    return drawn(p.shape, generator, dtype, p.device).to(p.dtype)


def loss_of(params: Sequence[torch.Tensor], step: int, without: Any = ()) -> Any:
    """A loss whose gradients are those of the step; parameters ``without`` gradients take no part."""
    given = zip(params, gradients(params, step), strict=True)
    terms = [(p * g.conj()).sum() for i, (p, g) in enumerate(given) if i not in without]
    return torch.stack([term.real.double() for term in terms]).sum()


def backward(params: Sequence[torch.Tensor], step: int, without: Any = ()) -> None:
    """A backward of `loss_of`."""
    loss_of(params, step, without).backward()


def copies(params: Iterable[torch.Tensor]) -> list[torch.nn.Parameter]:
    """Parameters of the same values in separate memory."""
    return [torch.nn.Parameter(p.detach().clone()) for p in params]


def values(params: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of the present values."""
    return [p.detach().clone() for p in params]


def equal(found: Iterable[torch.Tensor], expected: Iterable[torch.Tensor]) -> bool:
    """Whether dtypes and all values are equal, on whichever devices."""
    pairs = zip(found, expected, strict=True)
    return all(a.dtype == b.dtype and torch.equal(a.detach(), b.detach().to(a.device)) for a, b in pairs)


def skip_products_on_a_gpu(name: str) -> None:
    """Skips a test of bits on a GPU and on the host for rules of matrices, whose products differ there."""
    if torch.get_default_device().type != "cpu" and not OURS.type(name).entry.rule.elementwise:  # type: ignore[attr-defined]
        pytest.skip("products of matrices have other bits on a GPU")


def train(opt: Any, params: Sequence[torch.Tensor], steps: Iterable[int] = range(3)) -> None:
    """Takes steps, with gradients that depend on the number of the step; LBFGS takes a closure."""
    for step in steps:
        if type(opt).__name__ == "LBFGS":
            opt.step(bowl(opt, params))
        else:
            for p, g in zip(params, gradients(params, step), strict=True):
                p.grad = g.to_sparse() if type(opt).__name__ == "SparseAdam" else g
            opt.step(**loss_for(opt))


def reads_loss(opt: Any) -> bool:
    """Whether the steps of an optimizer need the loss."""
    return "loss" in opt.entry.rule.supplied if hasattr(opt, "entry") else False


def loss_for(opt: Any, loss: Any = 1.5) -> dict[str, Any]:
    """The argument of a step of an optimizer that reads the ``loss``."""
    return {"loss": loss} if reads_loss(opt) else {}


def bowl(opt: Any, params: Sequence[torch.Tensor]) -> Callable[[], torch.Tensor]:
    """A closure of a loss with a minimum, or with a maximum if the optimizer maximizes."""
    sign = -1 if opt.param_groups[0].get("maximize") else 1

    def closure() -> torch.Tensor:
        opt.zero_grad()
        squares = ((p - 0.3) * (p - 0.3).conj() for p in params)
        loss = sign * sum((1 + square.real).sqrt().sum() for square in squares)
        loss.backward()
        return loss

    return closure


def layers(count: int = 6) -> Any:
    """A chain of linear layers, the same in each call."""
    torch.manual_seed(0)
    return torch.nn.Sequential(*[torch.nn.Linear(8, 8, bias=False) for _ in range(count)])


class AliveGradients:
    """A count of the gradients of parameters: all that were final, and the most that were alive at once."""

    def __init__(self, params: Iterable[torch.Tensor]) -> None:
        self.all: list[weakref.ref[Any]] = []
        self.most = 0
        for p in params:
            p.register_post_accumulate_grad_hook(self._count)

    def _count(self, p: Any) -> None:
        self.all.append(weakref.ref(p.grad))
        self.most = max(self.most, sum(ref() is not None for ref in self.all))


def shapes_for(name: str) -> tuple[tuple[int, ...], ...]:
    """Shapes of parameters that an optimizer accepts."""
    return MATRICES if name == "Muon" else ((4, 3), (3,)) if name == "SparseAdam" else SHAPES


def tensors(state: Any) -> list[torch.Tensor]:
    """All tensors in a state, nested ones too, in order."""
    if isinstance(state, torch.Tensor):
        return [state]
    if isinstance(state, Mapping):
        return [t for key in sorted(state, key=str) for t in tensors(state[key])]
    if isinstance(state, (list, tuple)):
        return [t for part in state for t in tensors(part)]
    return []


def states(opt: Any) -> list[torch.Tensor]:
    """All tensors that an optimizer keeps, as its ``state_dict`` has them."""
    return tensors(opt.state_dict()["state"])


def check_shrunk_is_refused(opt: Any, which: str, key: str, left: int) -> None:
    """Shrinks the storage of the second parameter of an optimizer, of its gradient, or of its state ``key``, to so many bytes.

    The step is refused by name, and the first parameter does not change.
    """
    q, p = opt.param_groups[0]["params"]
    before = q.detach().clone()
    if which == "new gradient":
        p.grad, which = torch.ones(p.shape), "gradient"
    shrunk = {"parameter": p.data, "gradient": p.grad, "state": opt.state[p].get(key)}[which]
    shrunk.untyped_storage().resize_(left)
    with pytest.raises(ox.ArrayMemoryError, match=rf"\['params'\]\[1\]: the {which}.* storage (is freed|was shrunk)"):
        opt.step()
    assert torch.equal(q.detach(), before)
