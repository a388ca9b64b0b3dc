"""Objects with a fixed set of attributes: values are checked when set, and unknown names raise with a suggestion."""

import abc
import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from oxigrad.optim.settings.spellings import counterpart


def hint(name: str, names: Iterable[str]) -> str:
    """The counterpart of a name of another library, or a suggestion of the known name nearest to ``name``; empty where there is neither.

    >>> hint("learning_rte", ["learning_rate", "beta1"])
    ' (did you mean learning_rate?)'
    """
    names = list(names)
    if replacement := counterpart(name, names):
        return replacement
    near = difflib.get_close_matches(name, names, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def error_of_property(instance: Any, name: str) -> AttributeError | None:
    """The error that a property of this name raises, in whose place Python calls ``__getattr__``; None where there is no such property."""
    try:
        if hasattr(type(instance), name):
            object.__getattribute__(instance, name)
    except AttributeError as error:
        return error
    return None


class Sealing(abc.ABCMeta):
    """Metaclass that seals instances after ``__init__``."""

    __doc__: Any = vars(type)["__doc__"]  # that of a class, which may be a descriptor, and not that of the metaclass

    if not TYPE_CHECKING:  # to type checkers, the instance is one of the class

        def __call__(cls, *args: Any, **named: Any) -> Any:
            """A new instance."""
            instance = super().__call__(*args, **named)
            instance._seal()
            return instance

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the constructor, which ``__call__`` hides from `inspect.signature`."""
        attributes = next(vars(base) for base in cls.__mro__ if {"__signature__", "__init__"} & vars(base).keys())
        if "__signature__" in attributes:
            return attributes["__signature__"]
        _, *parameters = inspect.signature(attributes["__init__"]).parameters.values()
        return inspect.Signature(parameters)


class Sealed(metaclass=Sealing):
    """Base class of objects that take no new public attributes after construction.

    Attributes that ``__init__`` sets or the class declares may be assigned; a subclass may set others in its ``__init__``.
    ``_checks`` maps attributes to functions ``(object, value)`` that validate a new value, at construction too; attributes in
    ``_fixed`` cannot be assigned after construction. `AttributeError` names the attribute, and the nearest one. Names with a
    leading underscore are not checked.
    """

    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {}
    _fixed: ClassVar[frozenset[str]] = frozenset()

    if not TYPE_CHECKING:  # to type checkers, attributes are those that a class declares

        def __setattr__(self, name: str, value: Any) -> None:
            label = type(self).__name__
            if not name.startswith("_") and "_sealed" in vars(self):
                if name in self._fixed:
                    raise AttributeError(
                        f"{label}: {name} is fixed at construction: make a new object with {name}={value!r}"
                    )
                if name not in vars(self) and not hasattr(type(self), name):
                    raise self._unknown(name)
            check = self._checks.get(name)
            super().__setattr__(name, check(self, value) if check else value)

        def __delattr__(self, name: str) -> None:
            if not name.startswith("_"):
                raise AttributeError(f"{type(self).__name__}: {name} cannot be deleted")
            super().__delattr__(name)

        def __getattr__(self, name: str) -> Any:
            raise error_of_property(self, name) or self._unknown(name)

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
        return hint(name, [each for each in (*vars(self), *dir(type(self))) if not each.startswith("_")])
