"""Functions under optax's names, from the table of optimizers: the arguments of each, and what they mean here.

Nothing here is a formula or a default: rules have the one, and their presets (``compat="optax"``) the other.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oxigrad import optim
from oxigrad._core import ShapeError, StructureError
from oxigrad._names import check_flags, nearest
from oxigrad.ops.backends import is_array
from oxigrad.optax.library import jax
from oxigrad.optax.pytrees import key_paths
from oxigrad.optax.transformation import Transformation, transformation
from oxigrad.optim.settings.documentation import elsewhere, sections
from oxigrad.optim.settings.hyperparameters import made_as_by, preset_of, rules_of
from oxigrad.optim.settings.spellings import meant
from oxigrad.optim.table.row import TABLE, Alias
from oxigrad.rules.core.arguments import OPTAX

# A hyperparameter of ours, or those that a tuple of theirs gives.
Ours = str | tuple[str, ...]
Part = Any  # a class: an optimizer of one rule, or a transform

# Arguments that are the dtype of a slot, and the slot.
SLOTS = {"mu_dtype": "m", "accumulator_dtype": "m", "dtype_momentum": "m", "state_dtype": "z"}
MASKS = ("mask", "weight_decay_mask")

# What optax writes in another way than we: from theirs to ours, and their default from ours.
FROM_OPTAX: dict[str, Callable[[Any], Any]] = {
    "eps_in_sqrt": lambda value: "inside" if value else "outside",
    "eps_root": lambda value: None if _is_zero(value) else value,
    "factored": lambda value: "largest" if value else None,
    "decay_rate": lambda value: _of(lambda rate: -rate, value),
    "clipping_threshold": lambda value: math.inf if value is None else value,
    "clip_threshold": lambda value: math.inf if value is None else value,
    "learning_rate": lambda value: 1.0 if value is None else value,
    **dict.fromkeys(("momentum", "weight_decay", "beta3"), lambda value: 0.0 if value is None else value),
}
TO_OPTAX: dict[str, Callable[[Any], Any]] = {
    "eps_in_sqrt": lambda value: value == "inside",
    "eps_root": lambda value: 0.0 if value is None else value,
    "factored": lambda value: value is not None,
    "decay_rate": lambda value: -value,
}

ALIASES: dict[str, Alias] = {name: alias for row in TABLE.values() for name, alias in row.optax.items()}


def parts_of(names: Sequence[str]) -> tuple[Part, ...]:
    """The classes of `oxigrad.optim` of these names."""
    return tuple(getattr(optim, name) for name in names)


def meaning(name: str, parts: Sequence[Part], words: Mapping[str, Ours] = {}) -> Ours:
    """The hyperparameter of the parts for an argument of optax, or those that a tuple of theirs gives."""
    declared = {each for rule in rules_of(parts) for each in rule.defaults}
    if name in words or name in declared:
        return words.get(name, name)
    names = meant(name, declared)
    return names if len(names) > 1 else next(iter(names), name)


def _meaning_of(alias: Alias) -> Callable[[str], Ours]:
    parts = parts_of((*alias.parts, *alias.nesterov))
    return functools.partial(meaning, parts=parts, words=alias.words)


def function(name: str) -> Callable[..., Transformation]:
    """The function of a row of `ALIASES`."""
    alias = ALIASES[name]
    signature = inspect.Signature([*_parameters(alias)], return_annotation=Transformation)

    def build(*args: Any, **named: Any) -> Transformation:
        arguments = signature.bind(*args, **named)
        arguments.apply_defaults()
        return _transformation_of(alias, arguments.arguments)

    build = with_known_names(build, name, signature, _meaning_of(alias))
    build.__name__ = build.__qualname__ = name
    build.__module__, build.__doc__ = "oxigrad.optax", _documentation(name, alias, signature)
    return build


def with_known_names(
    function: Callable[..., Transformation], name: str, signature: inspect.Signature, meaning_of: Callable[[str], Ours]
) -> Callable[..., Transformation]:
    """A function under optax's name whose errors for unknown arguments suggest optax's."""

    @functools.wraps(function)
    def checked(*args: Any, **named: Any) -> Transformation:
        for unknown in named.keys() - signature.parameters.keys():
            arguments = [*signature.parameters]
            hint = _suggestion(unknown, arguments, meaning_of)
            raise TypeError(f"{name}: unknown: {unknown}{hint}; its arguments are {', '.join(arguments)}")
        try:
            signature.bind(*args, **named)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; its arguments are {', '.join(signature.parameters)}") from None
        return function(*args, **named)

    named_function: Any = checked
    named_function.__signature__ = signature
    return named_function


def _suggestion(unknown: str, arguments: Sequence[str], meaning_of: Callable[[str], Ours]) -> str:
    """A suggestion for an argument that optax lacks: its word for one of ours or PyTorch's, or a similar one."""
    ours = {"lr": "learning_rate"}.get(unknown, unknown)
    meanings = {word: meaning_of(word) for word in arguments}
    words = [word for word, of in meanings.items() if of == ours or (ours in of and isinstance(of, tuple))]
    suggestion = ours if ours in arguments else words[0] if words else nearest(unknown, arguments)
    return f" (did you mean {suggestion}?)" if suggestion else ""


def _parameters(alias: Alias) -> Iterable[inspect.Parameter]:
    """The parameters of the function of an alias."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name in alias.arguments.split():
        if name == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            yield inspect.Parameter(name, kind, default=_default(alias, name))


def _default(alias: Alias, name: str) -> Any:
    """The default of an argument."""
    default = alias.defaults.get(name, inspect.Parameter.empty if name == "learning_rate" else ...)
    if default is not ...:
        return default
    if name in SLOTS or name in MASKS:
        return None
    if name == "nesterov" and alias.nesterov:
        return False
    ours, preset = _meaning_of(alias)(name), {}
    for part, rule in zip(parts := parts_of(alias.parts), rules_of(parts), strict=True):
        preset |= {**rule.defaults, **(preset_of(part, "optax") or {})}
    value = tuple(preset[each] for each in ours) if isinstance(ours, tuple) else preset[ours]
    return TO_OPTAX[name](value) if name in TO_OPTAX else value


def _documentation(name: str, alias: Alias, signature: inspect.Signature) -> str:
    parts = parts_of(alias.parts)
    titles = " and ".join(f"`oxigrad.optim.{part}`" for part in alias.parts)
    first = inspect.cleandoc(rules_of(parts)[-1].call.__doc__ or "").partition("\n")[0]
    return (
        f"{first}\n\nThe arguments are as in ``optax.{name}``; the rule is "
        f"{titles}.\n\n{described(signature, parts, alias.words)}"
    )


def described(signature: inspect.Signature, parts: Sequence[Part], words: Mapping[str, Ours] = {}) -> str:
    """The sections of a docstring for arguments of optax that set hyperparameters of the parts."""

    def meant_by(argument: str) -> Sequence[str]:
        ours = meaning(argument, parts, words)
        return (ours,) if isinstance(ours, str) else ours

    return sections(elsewhere(signature, rules_of(parts), meant_by, OPTAX))


def _dtype(name: str, value: Any) -> Any:
    """The argument ``name``, the dtype of a slot; raises `ValueError` for no floating-point dtype and not None."""
    try:
        is_dtype = value is None or jax.numpy.issubdtype(jax.numpy.dtype(value), jax.numpy.floating)
    except TypeError:
        is_dtype = False
    if not is_dtype:
        raise ValueError(f"{name} is {value!r}: expected a floating-point dtype, such as 'bfloat16', or None")
    return value


def _transformation_of(alias: Alias, arguments: Mapping[str, Any]) -> Transformation:
    """The transformation of an alias with these arguments."""
    (chosen,) = check_flags(nesterov=number("nesterov", arguments["nesterov"])) if alias.nesterov else (False,)
    parts = parts_of(alias.nesterov if alias.nesterov and chosen else alias.parts)
    values: dict[str, Any] = dict(alias.fixed)
    dtypes: dict[str, Any] = {}
    mask = None
    for name, value in arguments.items():
        if name in SLOTS:
            dtypes[SLOTS[name]] = _dtype(name, value)
        elif name in MASKS:
            mask = value
        elif name != "nesterov" or not alias.nesterov:
            values |= _values(alias, name, value)
    flags = {name for rule in rules_of(parts) for name in rule.flags}
    traced = {name: value.value for name, value in values.items() if name in flags and isinstance(value, _Constant)}
    constant = {name: value for name, value in values.items() if name not in traced}
    if mask is None or mask is True:
        return transformation(optimizer_of(parts, constant), dtypes=dtypes, flags=traced)
    decay = str(alias.words.get("weight_decay", "weight_decay"))

    def masked(params: Any) -> optim.Optimizer:
        # A pytree may be callable, as a module of Equinox is.
        is_leaf = jax.tree_util.treedef_is_leaf(jax.tree.structure(mask))
        mask_tree = mask(params) if callable(mask) and is_leaf else mask
        _check_mask(mask_tree)
        try:
            every = jax.tree.map(lambda is_kept, below: jax.tree.map(lambda _: bool(is_kept), below), mask_tree, params)
        except ValueError as error:
            raise StructureError(f"the mask has another structure than the parameters: {error}") from None
        without = {path for path, keeps in zip(key_paths(params), jax.tree.leaves(every), strict=True) if not keeps}
        groups = {(lambda path, array: path in without): {decay: 0.0}}
        return optimizer_of(parts, constant, groups=groups if without else None)

    return transformation(masked, dtypes=dtypes, flags=traced)


def optimizer_of(parts: Sequence[Part], values: Mapping[str, Any], **options: Any) -> optim.RuleOptimizer:
    """The optimizer of the parts, each with the values that it declares, and with optax's defaults."""
    optimizers = []
    for part, rule in zip(parts, rules_of(parts), strict=True):
        part_values = {name: value for name, value in values.items() if name in rule.defaults}
        optimizers.append(made_as_by(part, "optax", **part_values, **({} if parts[1:] else options)))
    return optimizers[0] if len(optimizers) == 1 else optim.Chain(*optimizers, **options)


def _values(alias: Alias, name: str, value: Any) -> dict[str, Any]:
    """Our hyperparameters for an argument of optax."""
    ours = _meaning_of(alias)(name)
    if isinstance(ours, tuple):
        return {each: number(each, one) for each, one in zip(ours, value, strict=True)}
    read = FROM_OPTAX.get(name)
    if name == "eps_root" and not _is_optional(alias, ours):
        read = None
    return {ours: number(name, read(value) if read else value)}


def _is_optional(alias: Alias, hyperparameter: str) -> bool:
    """Whether a hyperparameter may be None."""
    domains = [rule.domains.get(hyperparameter) for rule in rules_of(parts_of(alias.parts))]
    return any(None in (each.choices or ()) for each in domains if each is not None)


def _check_mask(mask: Any) -> None:
    """Raises `TypeError` for a leaf of a mask that is neither a bool nor an array of one."""
    for path, is_kept in jax.tree_util.tree_leaves_with_path(mask):
        is_number = jax.numpy.shape(is_kept) == () and is_array(is_kept)
        check_flags(**{f"mask{jax.tree_util.keystr(path)}": is_kept.item() if is_number else is_kept})


class _Constant:
    """A traced number as a function of the step, which is what a hyperparameter may be."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, step: Any) -> Any:
        return self.value

    def __repr__(self) -> str:
        return repr(self.value)


def number(name: str, value: Any) -> Any:
    """A hyperparameter: an array as a number, or if it is traced as a function of the step."""
    if not is_array(value):
        return value
    if tuple(value.shape) != ():
        raise ShapeError(f"{name} has shape {tuple(value.shape)}: expected a number")
    return _Constant(value) if isinstance(value, jax.core.Tracer) else value.item()


def _is_zero(value: Any) -> bool:
    """Whether a number is known to be zero."""
    return not isinstance(value, jax.core.Tracer) and not callable(value) and value == 0


def _of(f: Callable[[Any], Any], value: Any) -> Any:
    """The result of a function for a number or for a schedule."""
    return (lambda step: f(value(step))) if callable(value) else f(value)
