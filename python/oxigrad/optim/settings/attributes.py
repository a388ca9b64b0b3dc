"""Objects with a fixed set of attributes: values are checked when set, and unknown names raise with a suggestion."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from oxigrad.optim.settings.spellings import counterpart


def hint(name: str, names: Iterable[str]) -> str:
    """The counterpart of a name of another library, or a suggestion of the known name nearest to ``name``.

    Empty if neither exists.

    >>> hint("learning_rte", ["learning_rate", "beta1"])
    ' (did you mean learning_rate?)'
    """
    names = list(names)
    if replacement := counterpart(name, names):
        return replacement
    near = difflib.get_close_matches(name, names, 1, cutoff=0.65)
    return f" (did you mean {near[0]}?)" if near else ""


class Sealed:
    """Base class of objects that take no new public attributes after construction.

    Attributes that ``__init__`` sets or the class declares may be assigned; a subclass may set others in its
    ``__init__``. ``_checks`` maps attributes to functions ``(object, value)`` that validate a new value, at
    construction too; attributes in ``_fixed`` cannot be assigned after construction. `AttributeError` names the
    attribute, and the nearest one. Names with a leading underscore are not checked.

    The object has the attributes in ``_attributes`` too, which depend on its parts. `_get_attribute` and
    `_set_attribute` pass them on.
    """

    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {}
    _fixed: ClassVar[frozenset[str]] = frozenset()
    _attributes: frozenset[str] = frozenset()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            _, *parameters = inspect.signature(cls.__init__).parameters.values()
            signature = vars(cls).get("__signature__") or inspect.Signature(parameters)
            # Not by assignments, from which type checkers would take the types.
            for name, value in {"__signature__": signature, "__init__": _sealing(cls.__init__)}.items():
                setattr(cls, name, value)

    if not TYPE_CHECKING:  # to type checkers, attributes are those that a class declares

        def __setattr__(self, name: str, value: Any) -> None:
            if not name.startswith("_") and "_sealed" in vars(self):
                if name in self._fixed:
                    label = type(self).__name__
                    raise AttributeError(
                        f"{label}: {name} is fixed at construction: make a new object with {name}={value!r}"
                    )
                if name in self._attributes:
                    return self._set_attribute(name, value)
                if name not in vars(self) and not hasattr(type(self), name):
                    raise self._unknown(name)
            if name in self._checks:
                return self._set_checked(name, value)
            return super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            if not name.startswith("_"):
                raise AttributeError(f"{type(self).__name__}: {name} cannot be deleted")
            super().__delattr__(name)

        def __getattr__(self, name: str) -> Any:
            if name in self._attributes:
                return self._get_attribute(name)
            if hasattr(type(self), name):  # a property, in whose place Python calls this function: its error
                object.__getattribute__(self, name)
            raise self._unknown(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *filter(str.isidentifier, self._attributes)]

    def _get_attribute(self, name: str) -> Any:
        """The value of an attribute of `_attributes`."""
        raise NotImplementedError

    def _set_attribute(self, name: str, value: Any) -> None:
        """Sets an attribute of `_attributes`, whose value is validated."""
        raise NotImplementedError

    def _set_checked(self, name: str, value: Any) -> None:
        """Sets an attribute of `_checks`, whose value is validated."""
        object.__setattr__(self, name, self._checks[name](self, value))

    def _seal(self) -> None:
        """Ends the construction, after which there are no new attributes."""
        vars(self)["_sealed"] = True

    def _unknown(self, name: str) -> AttributeError:
        """The error for an attribute that there is not."""
        if name.startswith("_"):
            return AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return AttributeError(f"{type(self).__name__} has no attribute {name}{self._hint(name)}")

    def _hint(self, name: str) -> str:
        """The end of the error message for an unknown attribute."""
        return hint(name, [each for each in dir(self) if not each.startswith("_")])


def _sealing(construct: Callable[..., None]) -> Callable[..., None]:
    """The ``__init__`` of a class, which seals the instances of the class at its end."""

    @functools.wraps(construct)
    def sealing(self: Any, /, *args: Any, **named: Any) -> None:
        construct(self, *args, **named)
        if type(self).__init__ is sealing:
            self._seal()

    return sealing
