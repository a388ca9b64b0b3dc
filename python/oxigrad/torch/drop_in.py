"""Optimizers that PyTorch has: its own classes, with the step of oxigrad."""

import inspect
from collections.abc import Mapping
from typing import Any

from oxigrad.rules.rule import Rule
from oxigrad.torch.library import torch
from oxigrad.torch.optimizer import OPTIONS, Stepping
from oxigrad.torch.table import Entry


class DropIn(Stepping):
    """An optimizer of PyTorch's: subclasses have its class among their bases, which checks arguments and old states."""

    def __init__(self, params: Any, *args: Any, **keywords: Any) -> None:
        self._take_options(keywords)
        super().__init__(params, *args, **keywords)


_EXAMPLE = """

    A subclass of `torch.optim.{name}` with the same arguments, ``param_groups`` and ``state``: states go to and fro. By keyword it
    also has the options of `oxigrad.torch`.

    >>> import torch
    >>> weight = torch.nn.Parameter(torch.ones({shape}))
    >>> opt = {name}([weight], lr=0.5)
    >>> opt.zero_grad()
    >>> (weight**2).sum().backward()
    >>> opt.step()
    >>> bool((weight < 1).all())
    True
    """


def drop_in(name: str, rule: Rule, *, shape: str = "3", **places: Any) -> Any:
    """The class of this name: PyTorch's, whose steps are those of a rule."""
    theirs = getattr(torch.optim, name)
    first = (rule.call.__doc__ or name).split("\n\n", 1)[0].split("\n")[0].rstrip()
    body: Mapping[str, Any] = {
        "__doc__": first + _EXAMPLE.format(name=name, shape=shape),
        "__module__": "oxigrad.torch",
        "__signature__": _signature(theirs),
        "entry": Entry(rule, **places),
        "theirs": theirs,
    }
    return type(DropIn)(name, (DropIn, theirs), dict(body))


def _signature(theirs: type) -> inspect.Signature:
    """The signature of PyTorch's class, with the options of this package."""
    own = [p.replace(annotation=p.empty) for p in inspect.signature(theirs).parameters.values()]
    options = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in OPTIONS.items()]
    return inspect.Signature([*own, *options])
