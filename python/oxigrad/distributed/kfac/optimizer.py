"""KFAC: gradients preconditioned by Kronecker factors of the Fisher information, on one worker or several."""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, ClassVar, Literal, cast

import numpy as np

from oxigrad import SparseRows, StateError, tree
from oxigrad._typing import Array, Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.errors import log
from oxigrad.distributed.fields import Field, check_flags
from oxigrad.distributed.kfac.kronecker import Method
from oxigrad.distributed.kfac.layers import Layer, Statistics, recorded
from oxigrad.distributed.kfac.preconditioner import Preconditioner, Settings
from oxigrad.distributed.methods.collective import CollectiveWrapper
from oxigrad.distributed.methods.means import mean_over_workers
from oxigrad.extend import COUNT, Domain, Recording
from oxigrad.optim import Interval, Optimizer
from oxigrad.schedules import Schedule

_POSITIVE = Domain(interval=Interval("(0, inf)"))


def _number(name: str, domain: Domain, *unchecked: type) -> Callable[[Any, Any], Any]:
    """The check of a number, or of a value of the types that need no further check."""
    return lambda opt, value: value if isinstance(value, unchecked) else domain.check(name, value)


_FACTORS = Field(
    "_preconditioner",
    lambda wrapper, value: (value.plain(), value.arrays()),
    lambda wrapper, plain, arrays: Preconditioner.restored(plain, arrays),
    lambda wrapper: (
        f"{side}-{name}" for side in ("inputs", "outputs") for name in ("factor", "decomposed", "inverse")
    ),
)


class KFAC(CollectiveWrapper):
    """Kronecker-factored approximate curvature (Martens and Grosse 2015, arXiv:1503.05671) around an optimizer.

    The gradient V of a layer, as a matrix of inputs and outputs, becomes ``A^-1 V G^-1`` before the optimizer takes its
    step, where A and G are running averages of the second moments of the layer's inputs and of the derivatives of the
    loss with respect to its outputs. Layers are found by recording the loss: parameters W in ``x @ W`` or ``W @ x``,
    with their bias if there is one, where x is any stack of examples; W may be reshaped, as the filters of a
    convolution written as a product with patches are (Grosse and Martens 2016, arXiv:1602.01407). The first axis of x
    counts the examples, further axes are positions. All other parameters keep their gradients. So do matrices that a
    program uses together with their transpose, and parameters in functions with custom derivative rules.

    `minimize` records the loss, and takes the step; in a loop of your own, pass what `compute_statistics` returns to
    `update`. The loss is a mean over the examples of the batch (``mean``; False for a sum). Its derivatives give the
    empirical Fisher information; for the Fisher information itself, pass `minimize` a loss with labels drawn from the
    model as ``sampled``.

    Several workers need batches of equal size. They average gradients and moments, and take the same step. One worker
    computes each decomposition; costs decide which (Pauloski et al. 2021, KAISA, arXiv:2107.01739). ``memory`` chooses
    who holds the decompositions of a layer: "comm_opt", every worker; "mem_opt", one worker, which sends the
    preconditioned gradient to the others in each step; "hybrid_opt", the part ``gradient_workers`` of the workers.

    Args:
        optimizer: the optimizer that takes the steps, without weight decay in the gradient.
        damping: number or schedule that is added to the products of eigenvalues of ``A`` and of ``G``.
        factor_decay: the weight of earlier batches in the factors.
        kl_clip: bounds the change of the model in one step: all gradients of layers are scaled by ``min(1, sqrt(kl_clip
            / |sum of V * preconditioned V| / learning_rate**2))``; None for no bound.
        kl_learning_rate: the learning rate in that formula; None reads it from the optimizer, which must have one.
        method: "eigen" decomposes the factors, and damps the product of the eigenvalues; "inverse" inverts each damped
            factor.
        split_damping: whether the factors are damped apart, by ``pi * sqrt(damping)`` and ``sqrt(damping) / pi``, pi
            balancing their traces.
        factor_update_steps: the number of steps from one update of the factors to the next.
        inverse_update_steps: the number of steps from one decomposition to the next.
        memory: "comm_opt", "hybrid_opt" or "mem_opt".
        gradient_workers: for "hybrid_opt", the part of the workers that hold the decompositions of a layer.
        mean: whether the loss is a mean over examples rather than a sum.
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    After the loss of a worker, the others repeat the step and continue. Raises `StructureError` on all workers if they
    record different layers, and logs a loss without any. Moments that are not finite do not change the factors.

    >>> from oxigrad import optim, xp
    >>> x, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0], [5.0]])
    >>> model, opt = {"w": np.zeros((2, 1))}, KFAC(optim.SGD(0.1), damping=0.01)
    >>> opt.minimize(lambda model: xp.sum((x @ model["w"] - y) ** 2) / 4, model)
    np.float64(8.5)
    >>> opt.factors("w")[0]
    array([[0.5, 0. ],
           [0. , 2. ]])
    """

    kl_clip: float | None
    kl_learning_rate: float | None
    factor_update_steps: int
    inverse_update_steps: int
    gradient_workers: float

    _states_defaults = True
    _fields = (_FACTORS,)
    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        "damping": _number("damping", _POSITIVE, Schedule),
        "factor_decay": _number("factor_decay", Domain(interval=Interval("[0, 1)"))),
        "kl_clip": _number("kl_clip", _POSITIVE, NoneType),
        "kl_learning_rate": _number("kl_learning_rate", Domain(interval=Interval("[0, inf)")), NoneType),
        "method": lambda opt, value: Domain(("eigen", "inverse")).check("method", value),
        "split_damping": lambda opt, value: check_flags(split_damping=value)[0],
        "factor_update_steps": _number("factor_update_steps", COUNT),
        "inverse_update_steps": _number("inverse_update_steps", COUNT),
        "memory": lambda opt, value: Domain(("comm_opt", "hybrid_opt", "mem_opt")).check("memory", value),
        "gradient_workers": _number("gradient_workers", Domain(interval=Interval("(0, 1]"))),
        "mean": lambda opt, value: check_flags(mean=value)[0],
    }
    _fixed: ClassVar[frozenset[str]] = frozenset({"method", "memory", "gradient_workers"})

    def __init__(
        self,
        optimizer: Optimizer,
        damping: float | Schedule = 0.001,
        *,
        factor_decay: float = 0.95,
        kl_clip: float | None = 0.001,
        kl_learning_rate: float | None = None,
        method: Method = "eigen",
        split_damping: bool = False,
        factor_update_steps: int = 1,
        inverse_update_steps: int = 1,
        memory: Literal["comm_opt", "hybrid_opt", "mem_opt"] = "comm_opt",
        gradient_workers: float = 0.5,
        mean: bool = True,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self.damping = damping
        self.factor_decay = factor_decay
        self.kl_clip, self.kl_learning_rate = kl_clip, kl_learning_rate
        self.method: Method = method
        self.split_damping = split_damping
        self.factor_update_steps, self.inverse_update_steps = factor_update_steps, inverse_update_steps
        self.memory, self.gradient_workers = memory, gradient_workers
        self.mean = mean
        self._preconditioner = Preconditioner()
        self._settings()  # raises for a learning rate that cannot be known

    def _settings(self) -> Settings:
        """The hyperparameters of the next step."""
        share = {"comm_opt": 1.0, "mem_opt": 0.0, "hybrid_opt": self.gradient_workers}
        damping = self.damping
        if isinstance(damping, Schedule):
            damping = _POSITIVE.check("damping", float(damping(self.step)))
        return Settings(
            damping,
            self.factor_decay,
            self.kl_clip,
            self.method,
            self.split_damping,
            self.inverse_update_steps,
            share[self.memory],
            0.0 if self.kl_clip is None else self._learning_rate(),
            self.optimizer.scale,
            self.communicator,
            self._seconds,
        )

    def _learning_rate(self) -> float:
        if self.kl_learning_rate is not None:
            return self.kl_learning_rate
        try:
            rate: Any = cast(Any, self.optimizer).learning_rate
            return float(cast(Any, rate(self.step) if callable(rate) else rate))
        except (AttributeError, TypeError):
            raise TypeError(
                f"KFAC: found no learning rate of {self.optimizer!r} for kl_clip: expected kl_learning_rate, or "
                "kl_clip=None"
            ) from None

    # --- statistics ---------------------------------------------------------------------------------------------------

    @property
    def layers(self) -> Mapping[str, Layer]:
        """The layers that have factors, by the key path of their weight."""
        return dict(self._preconditioner.layers)

    @property
    def ignored(self) -> int:
        """The number of batches whose moments were not finite, and left the factors as they were."""
        return self._preconditioner.ignored

    def factors(self, path: str) -> tuple[np.ndarray, np.ndarray]:
        """The factors A, of the inputs, and G, of the outputs, of a layer, by the key path of its weight.

        `KeyError` for any other path.
        """
        inputs, outputs = self._preconditioner.factors[path]
        return inputs.value.copy(), outputs.value.copy()

    def compute_statistics(
        self, loss: Callable[[Tree], Array], model: Tree, *, examples: int | None = None
    ) -> tuple[Any, Any, Statistics]:
        """The value of ``loss(model)``, its gradient, and the second moments of the layers, for `update`.

        ``examples`` is the number of examples in the batch, where the first axis of the inputs of layers does not count
        them. Nothing is changed, and nothing is sent. Raises `StructureError` where the loss does not depend on the
        model.
        """
        if not callable(loss):
            raise TypeError(f"KFAC: found {loss!r}, expected a function")
        leaves, structure = tree.flatten(model)
        scale = self.optimizer.scale
        call = Recording.of((lambda model: scale * loss(model)) if scale != 1.0 else loss, (model,), 0)
        paths = [str(structure.path(i)) for i in range(len(leaves))]
        trained = self._parameters.read(model).keys()
        gradients, statistics = recorded(call, leaves, paths, trained=trained, examples=examples, mean=self.mean)
        if not (statistics.layers or self._preconditioner.count):
            text = "the loss has no layer: expected x @ W or W @ x with a parameter W; steps are those without KFAC"
            log.warning("%s: %s", self.name, text)
        if scale != 1.0:
            squares = (g / g.dtype.type(scale) / g.dtype.type(scale) for g in statistics.outputs)
            statistics = Statistics(statistics.layers, statistics.inputs, tuple(squares))
        grads = call.arguments(gradients)
        return (call.value / scale if scale != 1.0 else call.value), grads, statistics

    # --- steps --------------------------------------------------------------------------------------------------------

    def minimize(
        self,
        loss: Callable[[Tree], Any],
        model: Tree,
        *,
        record: bool = False,
        in_backward: bool = False,
        has_aux: bool = False,
        sampled: Callable[[Tree], Array] | None = None,
        examples: int | None = None,
    ) -> Any:
        """`compute_statistics`, where the factors are due, and `update` in place.

        Returns the value of the loss before the step.

        ``sampled`` is a loss whose labels are drawn from the model's distribution: its derivatives give the factors.
        With ``record``, steps without statistics compute gradients by a recorded loss (see `Optimizer.minimize`). With
        ``has_aux`` the loss returns ``(value, aux)``, and so does `minimize`; uses of a weight in ``aux`` count as
        those in the loss.
        """
        if has_aux:
            options = {"record": record, "in_backward": in_backward, "sampled": sampled, "examples": examples}
            return self._minimized_with_aux(self.minimize, loss, model, **options)
        if in_backward:
            self._refuse_in_backward(record=record)
        statistics = None
        self._check_usable()
        if self._done < 0:
            self._parameters.check_replaceable(model)
            self.start(model)
        if self._preconditioner.count % self.factor_update_steps:
            value, grads = self._gradients_of_step(loss, model, record=record)
        elif sampled is None:
            value, grads, statistics = self.compute_statistics(loss, model, examples=examples)
        else:
            value, grads = self._gradients_of_step(loss, model, record=record)
            statistics = self.compute_statistics(sampled, model, examples=examples)[2]
        with self._lock.stepping():
            self._within_step(model, lambda: self._step(model, grads, statistics, keep_root=True))
        return value

    def update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        model: Tree,
        grads: Tree | None = None,
        statistics: Statistics | None = None,
        *,
        loss: Array | None = None,
    ) -> Tree:
        """See `Optimizer.update`.

        ``statistics`` of `compute_statistics` are added to the factors before the step; all workers pass some, or none.
        Raises `StateError` where no step has had any.
        """
        self._check_takes_gradients()
        with self._lock.stepping():
            return self._updated(
                model, grads, lambda model: self._within_step(model, lambda: self._step(model, grads, statistics))
            )

    def _step(
        self, model: Tree, grads: Tree | None, statistics: Statistics | None = None, *, keep_root: bool = False
    ) -> Tree:
        local = self._parameters.gradients(model, grads)
        model, late = self._entered(model)
        if statistics is None and not self._preconditioner.count:
            raise StateError(
                "KFAC: update has no statistics of this or an earlier batch: call value, grads, statistics = "
                "opt.compute_statistics(loss, model) and opt.update(model, grads, statistics), or opt.minimize(loss, "
                "model)"
            )
        model, trial = self._repeated(model, lambda: self._preconditioned(local, statistics, late=late))
        if trial is not None:  # else the others have completed this step, by the gradients of all, or all were late
            gradients, preconditioner = trial
            values, state = {"_done": self._done + 1}, {"_preconditioner": preconditioner}
            grads = self._parameters.tree(model, gradients)
            return self._with_step(
                lambda: self.take_step(self.optimizer, model, grads, keep_root=keep_root),
                values,
                state,
                accepted=not late,
            )
        self._report.count(accepted=not late)
        return model

    def _preconditioned(
        self, local: Mapping[str, Any], statistics: Statistics | None, *, late: bool
    ) -> tuple[dict[str, Any], Preconditioner] | None:
        """The gradients of the step, which are the same on all workers, and the factors after it; nothing is changed.

        The gradients of a worker that is late are not used; None where all are late.
        """
        settings, count, preconditioner = self._settings(), 0 if late else 1, self._preconditioner.copied()
        if not (means := mean_over_workers(local, self.communicator, count=count, timeout=self.timeout)):
            return None
        dense = {path: mean for path, mean in means.items() if not isinstance(mean, SparseRows)}
        return means | preconditioner(dense, statistics, settings, count=count), preconditioner
