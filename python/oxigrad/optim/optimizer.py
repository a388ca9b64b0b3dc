"""Base class of optimizers: options, steps, state, and slots by key path."""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oxigrad import _core, tree
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.ops.backends import dtype_name
from oxigrad.optim import param_groups
from oxigrad.optim.config import is_importable, restored, with_present_names
from oxigrad.optim.loss_scale import LossScale
from oxigrad.optim.options import Options, checked_precision
from oxigrad.rules import gradient_transforms, rule
from oxigrad.rules.rule import Rule
from oxigrad.stepping import functional
from oxigrad.stepping.parameter_group import ParameterGroup
from oxigrad.stepping.state import Report, collect, read, resume, write
from oxigrad.stepping.stepper import Stepper
from oxigrad.stepping.version import Version


class Slots(Mapping[Any, Mapping[str, Any]]):
    """Auxiliary variables by key path (a `KeyPath`, its text, or that without quotes where it is of one path) and name."""

    def __init__(self, by_path: Mapping[str, dict[str, Any]]) -> None:
        self._by_path = by_path

    def __getitem__(self, path: Any) -> Mapping[str, Any]:
        if str(path) not in self._by_path:
            alike = [text for text in self._by_path if '"' in text and _core.tree_unquoted(text) == path]
            if len(alike) == 1:
                return self._by_path[alike[0]]
            known = ", ".join(self._by_path) or "nothing yet: the first update makes the slots"
            raise KeyError(f"there are no slots for {path}; there are for {known}")
        return self._by_path[str(path)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    def __repr__(self) -> str:
        return f"Slots({self._by_path!r})"


class Optimizer(Options):
    """Base class of all optimizers. Every optimizer has these options, given by keyword.

    ``seed`` of the rule's noise; ``accumulate``: a step is taken with the mean of so many gradients, a slot
    ``accumulated-mean``; ``nonfinite``: what
    becomes of a step whose gradients have infinities or NaN: "propagate" (as arithmetic has it), "skip" (nothing changes, and
    `skipped` counts it) or "raise" (`NonFiniteError` with the key paths, nothing changes); ``loss_scale``: a `LossScale` for
    `minimize`, with which such steps are skipped at least; ``zero_gradients``: each step leaves zeros in the gradients, which must
    lie in host memory and be writable; ``sparse``: what a gradient that is `SparseRows` does to the rows that it does not have,
    "dense" (what zeros do), "lazy" (nothing) or "catch_up" (see `oxigrad.stepping.sparse_rows`); the last two do not ``accumulate``.

    Parameters of float16 and bfloat16 are computed in float32, and by default have slots of float32. ``slot_dtype`` keeps the slots
    of the update that begin as zeros in another dtype ("float32", "bfloat16", "float16"), or as codes of "8bit" (`Quantized`)
    where the core updates the parameter in host memory and it has 4096 elements or more. Of half precision: ``master`` adds a
    slot ``master-weights`` of float32, which are what is updated; ``rounding`` is to "nearest", "stochastic" (up or down at random, so that
    small updates are not lost on average), or "kahan", which carries what rounding took over to the next step, in a slot
    ``kahan-compensation``.

    Options are attributes. ``seed``, ``accumulate``, ``nonfinite``, ``loss_scale`` and ``zero_gradients`` may be set, and take
    effect on the next step; the others are fixed, and setting one raises `AttributeError`, as does any other name.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        accumulate: int = 1,
        nonfinite: str = "propagate",
        loss_scale: LossScale | None = None,
        zero_gradients: bool = False,
        sparse: str = "dense",
        slot_dtype: str | None = None,
        master: bool = False,
        rounding: str = "nearest",
    ) -> None:
        self._version = Version()
        self.sparse = sparse
        self.seed = seed
        self.accumulate = accumulate
        self.loss_scale = loss_scale
        self.zero_gradients = zero_gradients
        self.precision = checked_precision(slot_dtype, master, rounding)
        self.nonfinite = nonfinite
        self._stepper = Stepper(self)
        self._lock = _core.Lock()

    @property
    def name(self) -> str:
        """The name of the optimizer, as configurations and states have it."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The optimizer as plain data (JSON), for `from_config`; raises `TypeError` for a schedule that is no `Schedule`.

        >>> from oxigrad.optim import Adam
        >>> Adam(learning_rate=0.1).get_config()["learning_rate"]
        0.1
        """
        raise NotImplementedError

    # --- what a step asks of it ----------------------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """The factor of the loss in `compute_gradients`, by which the step divides the gradients."""
        return self.loss_scale.value if self.loss_scale else 1.0

    def _observe(self, *, finite: bool) -> None:
        """Has the loss scale observe a step, whose gradients were finite or not."""
        if self.loss_scale:
            self.loss_scale.observe(finite=finite)

    def _resume(self, stepper: Stepper) -> None:
        """Continues from another stepper, that of a loaded state."""
        self._stepper = stepper

    def _gradient_parts(self) -> tuple[Rule, ...]:
        """The rules that change each gradient before the optimizer's own."""
        scales, checks = self.loss_scale is not None, self.nonfinite != "propagate"
        parts = (_UNSCALE,) if scales else ()
        parts = (*parts, _FINITE) if checks else parts
        return (*parts, _ACCUMULATE) if self.accumulate > 1 else parts

    def _assign(self, path: str, array: Any) -> ParameterGroup | None:
        """The group of a parameter, given by its key path and array; None where it is frozen."""
        return self._group_for(self, path, array)

    def _group_for(self, owner: "Optimizer", path: str, array: Any) -> ParameterGroup | None:
        """The group of a parameter where the optimizer ``owner`` takes the steps: another than this one in a partition or in `SAM`."""
        raise NotImplementedError

    def _versions(self) -> Iterator[Version]:
        """The versions of its settings, and of those of the optimizers that it is made of: a plan holds until one changes."""
        yield self._version

    def _check_patterns(self, parameters: list[tuple[str, Any]]) -> None:
        """`StructureError` where a pattern matches none of the parameters of a model, given as paths and arrays."""

    # --- steps ---------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The number of steps taken."""
        return self._stepper.count

    @property
    def skipped(self) -> int:
        """The number of steps that were skipped because their gradients were not finite."""
        return self._stepper.skipped

    @property
    def slots(self) -> Slots:
        """The auxiliary variables, by key path and name: ``opt.slots["l1.weight"]["m"]``.

        An array may be assigned to one, of its shape and dtype, and is copied: the next step goes on from it. An array that is
        there may be changed in place too. Where it has been given other memory since the last step, as by torch's ``set_`` or
        NumPy's ``resize``, the step takes that, or raises the error that a parameter like it would get.
        """
        return Slots(self._stepper.slots)

    def build(self, model: Any) -> None:
        """Makes the slots for the parameters of ``model`` now, rather than in the first step."""
        with self._lock:
            self._stepper.build(model)

    def update(self, model: Any, grads: Any) -> Any:
        """Takes one step: updates the parameters of ``model``, in place where its arrays are writable.

        ``grads`` has the structure of ``model``; only parameters are looked at. One array at several paths of the model is one
        parameter: gradients that are given for it at these paths are added up, but one and the same array counts once. Returns the model: the same object,
        unless a parameter had to be replaced (an array of JAX, a read-only one) where no container can be changed.
        Raises an error that names the key path, with nothing changed: `StructureError`, `ShapeError`, `DtypeError`,
        `AliasError`, `ArrayMemoryError`, `NonFiniteError`. Threads wait for each other; what a step calls itself (a schedule, a
        rule, a signal handler that comes in between) may save the optimizer, and gets a `StateError` for anything else.
        """
        with self._lock.stepping():
            return self._stepper.update(model, grads)

    def compute_gradients(self, loss: Callable[[Any], Any], model: Any) -> tuple[Any, Any]:
        """The value of ``loss(model)`` and its gradient, with the structure of ``model``.

        With a ``loss_scale``, the gradient is that of the scaled loss, as `update` expects it.
        """
        if self.loss_scale is None:
            return value_and_grad_of(loss, model)
        scale = self.scale
        value, grads = value_and_grad_of(lambda model: scale * loss(model), model)
        return value / scale, grads

    def minimize(self, loss: Callable[[Any], Any], model: Any) -> Any:
        """`compute_gradients`, then `update` in place; returns the value of the loss before the step.

        Raises `StructureError`, before anything is changed, where a parameter can neither be written nor replaced in
        ``model`` itself: then use `update`, which returns the new tree.
        """
        value, grads = self.compute_gradients(loss, model)
        with self._lock.stepping():
            self._stepper.update(model, grads, keep_root=True)
        return value

    def averaged_parameters(self, model: Any = None) -> dict[str, Any]:
        """The averages of the parameters, by key path, as ASGD, `EMA`, `SWA` and the like keep them.

        Of several parts of a chain that keep averages, those of the last.
        Schedule-free optimizers compute theirs from slots and parameters, and have to be given the ``model``. Raises
        `StateError` where there are no averages.

        >>> import numpy as np
        >>> from oxigrad.optim import EMA, SGD, chain
        >>> opt = chain(SGD(1.0), EMA(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.averaged_parameters()
        {'w': array([-0.5])}
        """
        with self._lock.reading() if model is None else self._lock:
            return self._stepper.averaged(model)

    def copied_parameters(self) -> dict[str, Any]:
        """The copies of the parameters in another dtype, by key path, as `Copy` keeps them.

        Where parameters are updated in host memory, so are the copies: the arrays stay the same from step to step. Raises
        `StateError` where there are no copies.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD, Copy, chain
        >>> opt = chain(SGD(1.0), Copy("float16"))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.copied_parameters()
        {'w': array([-1.], dtype=float16)}
        """
        with self._lock.reading():
            return self._stepper.copies()

    def swap_in(self, model: Any) -> Any:
        """Puts the averages in the place of the parameters, in place as `update` does; `swap_out` puts these back.

        Returns the model. Until then there are no steps. Raises `StateError` where there are no averages.
        """
        with self._lock:
            return self._stepper.swap_in(model)

    def swap_out(self, model: Any) -> Any:
        """Puts the parameters back that `swap_in` replaced, to the bit, and returns the model.

        >>> import numpy as np
        >>> from oxigrad.optim import EMA, SGD, chain
        >>> opt = chain(SGD(1.0), EMA(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.swap_in(model), opt.swap_out({"w": model["w"].copy()})
        ({'w': array([-0.5])}, {'w': array([-1.])})
        """
        with self._lock:
            return self._stepper.swap_out(model)

    # --- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self, *, copy: bool = True) -> dict[str, Any]:
        """The state as plain data and arrays: slots by key path, counts, the state of schedules and the loss scale, and the config.

        The arrays are those of the slots, of the same library and dtype; with ``copy=False`` they are the slots
        themselves, which later steps may write to. ``config`` is None where it cannot be written down (see `get_config`).
        Raises `StateError` between `swap_in` and `swap_out`.
        """
        with self._lock.reading():
            return collect(self, copy=copy)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Report:
        """Loads the result of `state_dict`. Hyperparameters stay unchanged (see `from_config`).

        Arrays are copied, to the library and device of the parameter; the dtype must be the same. All is done or
        nothing: `StateError` lists what is missing, unexpected or of another shape or dtype. With ``strict=False``, what
        fits is loaded, and the report lists the rest. Where no model was seen yet, slots are compared when it comes, in
        `build` or the first `update`, which then raise the error, or fill the report.
        """
        with self._lock:
            return resume(self, with_present_names(state, self.name), strict=strict)

    def save(self, file: Any) -> None:
        """Writes `state_dict` to a safetensors file, which is replaced whole or not at all, whatever happens.

        Raises `OSError` where it cannot be written, and `StateError` for a dtype that the format does not have.
        """
        with self._lock.reading():
            write(file, collect(self, copy=False))

    def load(self, file: Any, strict: bool = True) -> Report:
        """Loads a file written by `save`, as `load_state_dict`.

        Raises `StateError` also if the file is damaged or has no state.
        """
        return self.load_state_dict(read(file), strict)

    def _remembering(self) -> dict[str, Any]:
        """The parts that have a state of their own, by name."""
        found = {name: part for name, part in self._parts() if hasattr(part, "state_dict")}
        return {name: part for name, part in found.items() if part.state_dict()}

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield "loss_scale", self.loss_scale

    def __reduce__(self) -> Any:
        """Pickles the configuration and the state; raises `TypeError` for an optimizer that has a function of the user.

        The classes that it is made of come along by name, so that the modules that define them are imported.
        """
        return restored, (self.get_config(), self.state_dict(), *filter(is_importable, self._classes()))

    def _classes(self) -> Iterator[type]:
        """The classes of the parts."""
        yield type(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = object.__new__(type(self))
        with self._lock.reading():
            self._stepper.check_whole()
            own = {
                name: value
                for name, value in vars(self).items()
                if name not in ("_lock", "_stepper", "_parameter_groups")
            }
            vars(made).update(copy.deepcopy(own, memo), _lock=_core.Lock(), _stepper=self._stepper.copied(made))
        return made

    # --- as a pure function --------------------------------------------------------------------------------------------

    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step, for `apply`: the step, and the slots by key path.

        >>> import numpy as np
        >>> from oxigrad.optim import Adam
        >>> sorted(Adam().init({"w": np.ones(2)})["slots"]["w"])
        ['m', 'v']
        """
        return functional.init(self, params)

    def apply(self, params: Any, grads: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The same step as `update`, as a pure function: returns new parameters and a new state, and changes nothing.

        It may be traced (``jax.jit``) and differentiated.
        """
        return functional.apply(self, params, grads, state)

    def table(self, model: Any) -> str:
        """A table of the parameters of ``model``, each with its optimizer and hyperparameters, to be printed.

        >>> import numpy as np
        >>> from oxigrad.optim import Signum
        >>> opt = Signum(0.1, groups={"*bias": {"beta": 0.0}, "head.*": None})
        >>> print(opt.table({"w": np.ones((2, 3)), "bias": np.ones(3), "head": {"w": np.ones(2)}}))
        parameter  shape   dtype    optimizer  hyperparameters
        w          (2, 3)  float64  Signum     learning_rate=0.1, beta=0.9
        bias       (3,)    float64  Signum     learning_rate=0.1, beta=0.0
        head.w     (2,)    float64  frozen
        """

        def row(path: Any, array: Any) -> tuple[str, ...]:
            choice = self._assign(str(path), array)
            what = (choice.optimizer.name, choice.text) if choice else ("frozen", "")
            return (str(path), str(tuple(array.shape)), dtype_name(array.dtype), *what)

        parameters = tree.parameters(model)
        self._check_patterns([(str(path), array) for path, array in parameters.items()])
        rows = (row(path, array) for path, array in parameters.items())
        return param_groups.table(rows, ("parameter", "shape", "dtype", "optimizer", "hyperparameters"))


_UNSCALE = rule.read(gradient_transforms.unscale, "gradient")
_FINITE = rule.read(gradient_transforms.finite, "gradient")
_ACCUMULATE = rule.read(gradient_transforms.accumulate, "gradient")
