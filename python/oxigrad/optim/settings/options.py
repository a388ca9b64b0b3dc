"""Options of all optimizers: their domains, their validation, and their configuration."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from oxigrad._typing import Config
from oxigrad.ops.backends import dtype_name
from oxigrad.optim.settings.attributes import Sealed, hint
from oxigrad.optim.settings.config import OPTIONS
from oxigrad.optim.settings.loss_scale import LossScale
from oxigrad.rules.core import norms
from oxigrad.rules.core.ranges import COUNT, Domain, Interval
from oxigrad.schedules.numbers import number
from oxigrad.step.arrays.precision import ROUNDINGS, SLOT_DTYPES, Precision
from oxigrad.step.arrays.sparse_rows import FAMILIES
from oxigrad.step.parameters.hyperparameter import Version

SEED = Domain(interval=Interval(f"[0, {2**64})"), is_whole=True)
_DOMAINS = {
    "nonfinite": Domain(("propagate", "skip", "raise")),
    "zero_gradients": Domain((True, False)),
    "state_device": Domain((None, "host")),
    "sparse": Domain(FAMILIES),
    "slot_dtype": Domain(SLOT_DTYPES),
    "master": Domain((True, False)),
    "rounding": Domain(ROUNDINGS),
    "dtype": Domain(("float16", "bfloat16", "float32", "float64")),
}


def checked_number(domain: Domain, name: str, value: Any) -> Any:
    """A number of a domain, or a 0-d array of any library, as Python's; raises `TypeError` or `ValueError` by name."""
    try:
        read = number(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: expected {domain.expected()}") from None
    return domain.check(name, read)


def _nonfinite(opt: "Options", value: Any) -> str:
    opt._nonfinite = _DOMAINS["nonfinite"].check("nonfinite", value)
    return _effective(opt._nonfinite, opt.loss_scale)


def _effective(nonfinite: str, loss_scale: LossScale | None) -> str:
    """The effective option ``nonfinite``: with a loss scale, "propagate" becomes "skip"."""
    return "skip" if loss_scale and nonfinite == "propagate" else nonfinite


def _loss_scale(opt: "Options", value: Any) -> LossScale | None:
    if not (value is None or isinstance(value, LossScale)):
        raise TypeError(f"loss_scale is {value!r}: expected None or a LossScale")
    if "_nonfinite" in vars(opt):
        vars(opt)["nonfinite"] = _effective(opt._nonfinite, value)
    return value


def _accumulate(opt: Any, value: Any) -> int:
    count = checked_number(COUNT, "accumulate", value)
    if opt.sparse != "dense" and count > 1:
        raise ValueError(
            f"sparse={opt.sparse!r} and accumulate are mutually exclusive: sum SparseRows before the step, or use "
            "'dense'"
        )
    if held := opt._stepper.micro if "_stepper" in vars(opt) else 0:
        raise ValueError(
            f"accumulate cannot change between steps: {held} of {opt.accumulate} gradients are accumulated"
        )
    return count


def _record_norms(opt: "Options", value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else () if value is None else value
    if not isinstance(names, Iterable):
        raise TypeError(f"record_norms is {value!r}: expected some of {', '.join(map(repr, norms.SLOTS))}")
    names = tuple(names)
    if unknown := [name for name in names if name not in norms.SLOTS]:
        raise ValueError(f"record_norms has {unknown[0]!r}: expected some of {', '.join(map(repr, norms.SLOTS))}")
    if "parameter" in names and opt.sparse != "dense":
        raise ValueError(
            f"record_norms has 'parameter' with sparse={opt.sparse!r}: a step sees some rows only; expected 'dense'"
        )
    return tuple(name for name in norms.SLOTS if name in names)


def _dtype(opt: Any, value: Any) -> Any:
    try:
        name = text_of_dtype(value)
    except TypeError:  # a class that is no dtype
        name = ""
    if name is not None and name not in (_DOMAINS["dtype"].choices or ()):
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"dtype is {value!r}: expected {_DOMAINS['dtype'].expected()}, or such a dtype of a library")
    return value


def text_of_dtype(dtype: Any) -> str | None:
    """The name of a dtype of any library, or of the class of a dtype; None for other objects."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    return dtype_name(np.dtype(dtype) if isinstance(dtype, type) else dtype)


def _state_device(_: Any, value: Any) -> str | None:
    try:
        return _DOMAINS["state_device"].check("state_device", value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; files are for the optimizers of oxigrad.torch") from None


class Options(Sealed):
    """Base class of optimizers with their options as attributes. Setting a fixed option raises `AttributeError`."""

    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        "seed": lambda opt, value: checked_number(SEED, "seed", value),
        "accumulate": _accumulate,
        "nonfinite": _nonfinite,
        "loss_scale": _loss_scale,
        "zero_gradients": lambda opt, value: _DOMAINS["zero_gradients"].check("zero_gradients", value),
        "state_device": _state_device,
        "sparse": lambda opt, value: _DOMAINS["sparse"].check("sparse", value),
        "record_norms": _record_norms,
        "dtype": _dtype,
    }
    _fixed: ClassVar[frozenset[str]] = frozenset(
        {
            "sparse",
            "state_device",
            "slot_dtype",
            "master",
            "rounding",
            "dtype",
            "optimizer",
            "optimizers",
        }
    )

    seed: int
    accumulate: int
    nonfinite: str
    loss_scale: LossScale | None
    zero_gradients: bool
    sparse: str
    record_norms: tuple[str, ...]
    state_device: str | None
    slot_dtype: str | None
    master: bool
    rounding: str
    _precision: Precision
    _version: Version
    _nonfinite: str

    def _set_options(self, options: Mapping[str, Any]) -> None:
        """Sets the options at construction. Raises `TypeError` for an unknown name."""
        if unknown := sorted(options.keys() - set(_OF_STEPS)):
            raise TypeError(
                f"{type(self).__name__}: unknown options: {', '.join(unknown)}{hint(unknown[0], _OF_STEPS)}; its "
                f"options are {', '.join(_OF_STEPS)}"
            )
        vars(self).update(_DEFAULTS)
        if not options:
            return
        values = {name: value for name, value in options.items() if not _is_default(name, value)}
        if [values.pop(name) for name in _PRECISION if name in values]:
            self._precision = checked_precision(*[options.get(name, OPTIONS[name]) for name in _PRECISION])
            vars(self).update({name: getattr(self._precision, name) for name in _PRECISION})
        for name in sorted(values, key=lambda name: name not in self._fixed):  # which the others are checked with
            setattr(self, name, values[name])

    def _stepping_options(self) -> list[str]:
        """The options set here that only the optimizer that takes the steps may have."""
        return [name for name, value in Options._given_options(self).items() if value != OPTIONS[name]]

    def _options(self) -> Config:
        """The options that differ from their defaults, as plain data."""
        return {name: value for name, value in self._given_options().items() if value != OPTIONS[name]}

    def _given_options(self) -> Config:
        options = {name: getattr(self, name) for name in OPTIONS if name not in ("groups", "dtype")}
        return options | {
            "nonfinite": "propagate" if self.loss_scale and self.nonfinite == "skip" else self.nonfinite,
            "loss_scale": self.loss_scale and self.loss_scale.get_config(),
        }

    def _shown_options(self) -> str:
        """The options that differ from their defaults, for ``repr``, each preceded by a comma."""
        others = {
            "loss_scale": self.loss_scale,
            "groups": getattr(self, "_groups", None),
            "dtype": getattr(self, "dtype", None),
        }
        shown = {**Options._given_options(self), **{name: value or None for name, value in others.items()}}
        return "".join(f", {name}={value!r}" for name, value in shown.items() if value != OPTIONS[name])


_PRECISION = ("slot_dtype", "master", "rounding")
# The options of all optimizers; the others choose parameters of one rule.
_OF_STEPS = [name for name in OPTIONS if name not in ("groups", "dtype")]
_DEFAULTS = {name: OPTIONS[name] for name in _OF_STEPS}
_DEFAULTS |= {"_nonfinite": OPTIONS["nonfinite"], "_precision": Precision()}

# The default precisions, which need no check: where slots keep half precision, and where they do not.
_DEFAULT_PRECISIONS = {keeps: Precision(keeps_halves=keeps) for keeps in (False, True)}


def _is_default(name: str, value: Any) -> bool:
    """Whether an option has its default, which needs no check; 0 is not False."""
    return type(value) is type(OPTIONS[name]) and value == OPTIONS[name]


def checked_precision(
    slot_dtype: Any,
    master: Any,
    rounding: Any,
    *,
    keeps_halves: bool = False,
    slot_dtype_option: str = "slot_dtype",
    named: Callable[[str], str] = str,
) -> Precision:
    """The options of precision, validated; ``slot_dtype_option`` is the name of the first one.

    ``named`` gives the name of an option in messages.
    """
    if slot_dtype is None and master is False and type(rounding) is str and rounding == "nearest":
        return _DEFAULT_PRECISIONS[keeps_halves]
    options = {"slot_dtype": (slot_dtype_option, slot_dtype), "master": ("master", master)}
    options["rounding"] = ("rounding", rounding)
    checked = {name: _DOMAINS[name].check(named(key), value) for name, (key, value) in options.items()}
    return Precision(**checked, keeps_halves=keeps_halves)
