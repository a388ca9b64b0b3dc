"""Optimizers that PyTorch has: its own classes, with the step of oxigrad."""

import inspect
from typing import Any

from oxigrad.optim.settings.documentation import Documentation, elsewhere, sections
from oxigrad.rules.core.arguments import TORCH
from oxigrad.rules.core.rule import Rule
from oxigrad.step.arrays.precision import half
from oxigrad.step.parameters.executor import HOST
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.library import torch
from oxigrad.torch.optimizer import OPTIONS, TensorOptimizer, refuse_by_theirs
from oxigrad.torch.state.conversion import begin, local
from oxigrad.torch.step.plan import places_of
from oxigrad.torch.table import Entry


class DropIn(TensorOptimizer):
    """Base class of optimizers that PyTorch has.

    PyTorch's class, the other base, checks arguments and loads old states.
    """

    #: The loss scale that gradients have, and whether one is not finite: PyTorch's scaler sets them during a step.
    grad_scale: Any
    found_inf: Any

    def __init__(self, params: Any, *args: Any, **keywords: Any) -> None:
        self._take_options(args, keywords)
        super().__init__(params, *args, **keywords)
        self.check_arguments(self.defaults)  # after PyTorch's class, which names what it refuses itself

    def _is_left_to_torch(self) -> bool:
        """Whether PyTorch's class takes a gradient that the step of oxigrad does not: a sparse one."""
        if self.theirs.__name__ not in _SPARSE:
            return False
        gradients = [p.grad for group in self.param_groups for p in group["params"]]
        return any(g is not None and g.layout is not torch.strided for g in gradients)

    def _take_recorded(self, scale: Any, loss: Any) -> None:
        """Takes the step of PyTorch's class."""
        refuse_by_theirs(self)
        self.check_groups()
        step = self.theirs.step
        step = step.__wrapped__ if getattr(step, "hooked", False) else step  # The hooks have been called.
        if scale is None:
            step(self)
            return
        with torch.no_grad():
            for p in [p for group in self.param_groups for p in group["params"] if p.grad is not None]:
                p.grad.mul_(1.0 / float(scale))
        before = self.grad_scale, self.found_inf
        self.grad_scale = self.found_inf = None
        try:
            step(self)
        finally:
            self.grad_scale, self.found_inf = before


class LazyAdagrad(DropIn):
    """Base class of Adagrad, whose state is made by the first step, as in other optimizers.

    PyTorch makes it at construction.
    """

    def __init__(self, params: Any, *args: Any, **keywords: Any) -> None:
        super().__init__(params, *args, **keywords)
        self.state.clear()

    def share_memory(self) -> None:
        """Makes the state, and moves the sums of squares into shared memory."""
        self._begin()
        torch.optim.Adagrad.share_memory(self)

    def _take_recorded(self, scale: Any, loss: Any) -> None:
        self._begin()  # in some versions PyTorch makes it at construction alone
        super()._take_recorded(scale, loss)

    def _begin(self) -> None:
        """Makes the state that is missing."""
        for path, _, number, p in places_of(self):
            group = TensorGroup(self.entry, self.param_groups[number], half(local(p)), number=number, scaled=False)
            begin(group, path, p, self.state[p], HOST)


_SPARSE = ("SGD", "Adagrad")

_EXAMPLE = """

    A subclass of `torch.optim.{name}` with the same arguments, ``param_groups`` and ``state``, so that state dicts
    load in both directions. It also takes the options of `oxigrad.torch`, by keyword.

    >>> import torch
    >>> weight = torch.nn.Parameter(torch.ones({shape}))
    >>> opt = {name}([weight], lr=0.5)
    >>> (weight**2).sum().backward()
    >>> opt.step()
    >>> bool((weight != 1).all())
    True
    """
_SPARSE_EXAMPLE = """

    A subclass of `torch.optim.{name}` with the same arguments, ``param_groups`` and ``state``. It updates the rows of
    sparse gradients.

    >>> import torch
    >>> table = torch.nn.Embedding(5, 2, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> opt = {name}(table.parameters(), lr=0.5)
    >>> table(torch.tensor([1, 3, 1])).sum().backward()
    >>> opt.step()
    >>> (table.weight != before).any(1)
    tensor([False,  True, False,  True, False])
    """


def drop_in(name: str, rule: Rule, *, shape: str = "3", base: type = DropIn, **places: Any) -> Any:
    """The class of this name: PyTorch's class, whose steps a rule takes. ``places`` are fields of `Entry`."""
    theirs = getattr(torch.optim, name)
    ignored = frozenset(
        {"weight_decay", "decoupled_weight_decay", "maximize"} - {*inspect.signature(theirs).parameters}
    )
    entry, signature = Entry(rule=rule, ignored=ignored, **places), _signature(theirs)
    example = _SPARSE_EXAMPLE if "Sparse" in name else _EXAMPLE
    body: dict[str, Any] = {
        "__doc__": documentation(entry, signature, example.format(name=name, shape=shape)),
        "__module__": "oxigrad.torch",
        "__signature__": signature,
        "entry": entry,
        "theirs": theirs,
    }
    return type(base)(name, (base, theirs), body)


def documentation(entry: Entry, signature: inspect.Signature, example: str) -> Documentation:
    """The documentation of a class: the summary of its rule, its arguments, and an example."""

    def meaning(key: str) -> list[str]:
        return [name for name, place in entry.places.items() if place[0] == key]

    def compose() -> str:
        about = (entry.rule.call.__doc__ or entry.rule.name).split("\n\n", 1)[0].rstrip()
        paragraph, _, program = inspect.cleandoc(example).partition("\n\n")
        notes = {name: note for name, note in TORCH.items() if len(meaning(name)) != 1}
        rows = elsewhere(signature, [entry.rule], meaning, notes, has_schedules=False)
        return "\n\n".join([about, paragraph, sections(rows), program]) + "\n"

    return Documentation(compose)


def options() -> list[inspect.Parameter]:
    """The options of all classes as parameters of a signature."""
    return [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in OPTIONS.items()]


def _signature(theirs: type) -> inspect.Signature:
    """The signature of PyTorch's class, with the options of this package."""
    arguments = [p.replace(annotation=p.empty) for p in inspect.signature(theirs).parameters.values()]
    return inspect.Signature([*arguments, *options()])
