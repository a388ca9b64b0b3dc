"""SAM, sharpness-aware minimization: gradients at adversarially perturbed parameters."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Never, NoReturn

from oxigrad import tree, xp
from oxigrad._core import RuleError
from oxigrad._names import in_words
from oxigrad._typing import Array, Config, T, Tree
from oxigrad.ops.backends import detached
from oxigrad.optim.optimizer import LocalOptimizer, Optimizer
from oxigrad.optim.settings.config import REGISTRY
from oxigrad.optim.settings.options import checked_number
from oxigrad.rules.core.arrays import wide_product
from oxigrad.rules.core.ranges import Domain, Interval
from oxigrad.step.plan.gradients import read_gradients
from oxigrad.step.plan.plan import Plan

_DISTANCE = Domain(interval=Interval("[0, inf)"))


class SAM(LocalOptimizer):
    """Sharpness-aware minimization (Foret et al. 2021, arXiv:2010.01412) around another optimizer.

    Args:
        optimizer: optimizer that takes the steps.
        rho: distance from the parameters at which the gradient is taken.
        adaptive: whether each element is scaled by its magnitude (ASAM).
        eta: number added to magnitudes where ``adaptive`` is set.
        **options: options of every optimizer, by keyword; see `Optimizer`.

    The gradient is taken at ``p + rho * g / norm(g)``, where g is the gradient at p and the norm is the
    global norm. With ``adaptive`` (ASAM, Kwon et al. 2021, arXiv:2102.11600) each element is scaled by ``t = abs(p) +
    eta``: the gradient is that at ``p + rho * t * t * g / norm(t * g)``, for biases too. Frozen parameters are not
    perturbed.

    `minimize` evaluates the loss twice, at the model and at a perturbed copy; only the step changes the model. For a
    pure step, pass the gradient at `perturbed` to `apply`; `update`, which has no loss, raises `RuleError`. Set
    ``options`` here, not on the inner optimizer, whose slots are here too. Raises
    `TypeError` where ``optimizer`` is not an optimizer that takes a gradient, and `ValueError` for a ``rho`` or ``eta``
    below 0 and for options on the inner optimizer.

    >>> import numpy as np
    >>> from oxigrad import optim
    >>> model, opt = {"x": np.array([1.0, 0.0])}, optim.SAM(optim.SGD(0.5), rho=0.1)
    >>> opt.minimize(lambda model: xp.sum(model["x"] ** 2), model), model["x"]
    (np.float64(1.0), array([-0.1,  0. ]))
    """

    rho: float
    adaptive: bool
    eta: float

    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        **Optimizer._checks,
        "rho": lambda opt, value: float(checked_number(_DISTANCE, "rho", value)),
        "eta": lambda opt, value: float(checked_number(_DISTANCE, "eta", value)),
        "adaptive": lambda opt, value: Domain((True, False)).check("adaptive", value),
    }

    def __init__(
        self, optimizer: Optimizer, rho: float = 0.05, *, adaptive: bool = False, eta: float = 0.01, **options: Any
    ) -> None:
        if not isinstance(optimizer, Optimizer) or type(optimizer).minimize is not Optimizer.minimize:
            raise TypeError(f"SAM: found {in_words(optimizer)}, expected an optimizer that takes a step by a gradient")
        self.optimizer = optimizer
        self._inner = {"optimizer": optimizer}
        super().__init__(**options)
        self._refuse_options()
        self.rho, self.adaptive, self.eta = rho, adaptive, eta

    def _refuse_options(self) -> None:
        if names := self.optimizer._stepping_options():
            raise ValueError(f"{self.optimizer!r}: {', '.join(names)} must be set on SAM instead")

    def _check_patterns(self, parameters: list[tuple[str, Array]]) -> None:
        """See `Optimizer._check_patterns`."""
        self._refuse_options()
        super()._check_patterns(parameters)

    def _assign(self, path: str, array: Array, owner: Optimizer | None = None) -> Any:
        """See `Optimizer._assign`."""
        return self.optimizer._assign(path, array, owner or self)

    def _current(self, name: str, step: int) -> Any:
        """See `Optimizer._current`."""
        return self.optimizer._current(name, step)

    def perturbed(self, model: Tree, grads: Tree) -> Any:
        """A copy of ``model`` with the perturbed parameters, given the gradients at the model."""
        leaves, structure = tree.flatten(model)
        plan = Plan(leaves, structure, self._step_options)
        plan.constants = {}  # the step, which follows, checks their gradients
        leaves = plan.detach(leaves)
        gradients = read_gradients(plan, grads, called=True)
        pairs = [(leaves[p.index], detached(gradients[p.index])) for p in plan.parameters]
        sizes = [xp.abs(p) + self.eta if self.adaptive else 1.0 for p, _ in pairs]
        scaled = [size * g for size, (_, g) in zip(sizes, pairs, strict=True)]
        terms = [xp.sum(wide_product(xp, x, x)) for x in scaled]
        length = xp.sqrt(sum(terms[1:], terms[0]))
        factor = self.rho * xp.where(length > 0, 1.0 / xp.where(length > 0, length, 1.0), 0.0)
        filled = list(leaves)
        for parameter, size, (p, g) in zip(plan.parameters, sizes, pairs, strict=True):
            there = xp.asarray(xp.astype(p + factor * (size * size * g), p.dtype))
            for i in (parameter.index, *parameter.tied):
                filled[i] = there
        return tree.unflatten(structure, filled)

    def _gradients(self, loss: Callable[[Tree], Array], model: Tree, *, record: bool) -> tuple[Any, Any]:
        """The value of ``loss(model)``, and the gradient at the perturbed parameters."""
        value, grads = super()._gradients(loss, model, record=record)
        return value, super()._gradients(loss, self.perturbed(model, grads), record=record)[1]

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return "SAM"

    def get_config(self) -> Config:
        """See `Optimizer.get_config`."""
        values = {"rho": self.rho, "adaptive": self.adaptive, "eta": self.eta}
        return {"optimizer": self.name, "parts": [self.optimizer.get_config()], **values, **self._options()}

    def update(self, model: T, grads: Tree | None = None, *others: Never, loss: Array | None = None) -> T:
        """Raises `RuleError`: a step needs the gradient at the perturbed parameters."""
        self._check_takes_gradients()

    def _check_takes_gradients(self) -> NoReturn:
        """See `Optimizer._check_takes_gradients`."""
        raise RuleError(
            "SAM takes the gradient at perturbed parameters: call minimize(loss, model); with gradients of your own, "
            "take them at perturbed(model, grads), and give them to apply"
        )

    def __repr__(self) -> str:
        shown = f"rho={self.rho}, adaptive={self.adaptive}, eta={self.eta}"
        return f"SAM({self.optimizer!r}, {shown}{self._shown_options()})"

    def _hint(self, name: str) -> str:
        is_inside = name in getattr(self.optimizer, "_declared", ())
        return ": set it on its optimizer" if is_inside else super()._hint(name)


REGISTRY["SAM"] = SAM
