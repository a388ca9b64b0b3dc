"""Losses: what they depend on, and their auxiliary results."""

from collections.abc import Callable
from typing import Any

from oxigrad import tree
from oxigrad._core import DerivativeError, Variable
from oxigrad.ops.backends import is_array, without_variables


def dependent(loss: Any) -> Any:
    """The value of a loss; raises `DerivativeError` for a constant, which depends on no parameter."""
    is_plain = not isinstance(loss, Variable) and (is_array(loss) or isinstance(loss, (int, float)))
    if is_plain and not any(
        isinstance(leaf, Variable) for leaf in tree.leaves(loss)
    ):  # of a container that is like an array
        raise DerivativeError(
            f"the loss depends on no parameter: it is {type(loss).__name__}, computed without the model that it is "
            "given, or from values of its arrays, as by float, stop_gradient or a library that records no "
            "derivatives"
        )
    return loss


class LossWithAux:
    """A loss with the value of a loss that returns ``(value, aux)``.

    ``aux`` is taken from the first call, with plain values.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function: Callable[[Any], Any] = function
        self.aux: Any = None
        self._is_called = False

    def __call__(self, model: Any) -> Any:
        """The value of the loss."""
        value, aux = self.pair(self.function(model))
        self.keep(aux)
        return value

    def keep(self, aux: Any) -> None:
        """Keeps the auxiliary result of the first call."""
        if not self._is_called:
            self._is_called, self.aux = True, tree.map(without_variables, aux)

    @staticmethod
    def pair(result: Any) -> tuple[Any, Any]:
        """The result of a loss, which is a pair; raises `TypeError` for any other."""
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"has_aux=True: found a loss of type {type(result).__name__}, expected a pair (value, aux)")
        return result


def minimized_with_aux(minimize: Callable[..., Any], loss: Callable[[Any], Any], model: Any, **options: Any) -> Any:
    """The pair of the value of the loss before the step of ``minimize``, and its auxiliary result there."""
    value = minimize(with_aux := LossWithAux(loss), model, **options)
    return value, with_aux.aux
