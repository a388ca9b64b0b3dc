"""The base class of optimizers for PyTorch: `torch.optim.Optimizer` with the step of oxigrad.

All data of an optimizer is in ``state``, ``param_groups`` and ``defaults``, as in PyTorch's; the step that is resolved
from them is dropped when they change.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from oxigrad._core import StateError
from oxigrad._names import check_flags, nearest
from oxigrad.optim.settings.options import SEED, checked_number, checked_precision
from oxigrad.step.arrays.precision import check_slot_dtype
from oxigrad.step.plan.announcements import Assignments, updated
from oxigrad.torch.library import torch, untraced, without_grad, without_modes
from oxigrad.torch.state.checking import check_state
from oxigrad.torch.state.conversion import kept_on_error, number_dtype
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.state.loading import KeepingDtypes
from oxigrad.torch.state.master import MasterWeights
from oxigrad.torch.step.in_backward import InBackward
from oxigrad.torch.step.offload.host import HostMemory
from oxigrad.torch.step.offload.steps import PieceSteps
from oxigrad.torch.step.plan import TensorPlace, clips, places_of, refuse_inference
from oxigrad.torch.step.resolved import TensorStep, all_parameters, is_recorded
from oxigrad.torch.table import Entry
from oxigrad.torch.table import named as named_group

# The options of all classes by keyword, with their defaults. Groups have those that are given.
OPTIONS: dict[str, Any] = {
    "state_dtype": None,
    "master": False,
    "rounding": "nearest",
    "seed": 0,
    "amp_fused": False,
    "max_norm": None,
    "in_backward": False,
    "state_device": None,
}
# The keys of a group that a step reads besides, and the likeness to a key from which another key is a misspelt one.
_KEYS = ("weight_decay", "maximize", "decoupled_weight_decay")
_MISSPELT = 0.85
# The options of the constructor that no group has.
_OF_ALL = ("in_backward", "state_device")
_NOTHING = nullcontext()


class TensorOptimizer(KeepingDtypes):
    """`torch.optim.Optimizer` whose ``step`` is one dispatch of oxigrad for all tensors in host memory."""

    entry: ClassVar[Entry]
    __signature__: ClassVar[inspect.Signature]
    #: PyTorch's class of the same name, if there is one.
    theirs: ClassVar[Any] = None
    #: The resolved steps: that of all parameters, and those of parts, by the identities of their parameters.
    _resolved: dict[tuple[int, ...], TensorStep]
    #: The master weights of parameters, which follow writes outside of steps.
    masters: MasterWeights
    _backward: InBackward | None = None
    #: The memory of slots, where that is a file.
    state_file: StateFile | None = None
    _host: PieceSteps | None = None
    #: The steps that are taken piece by piece: steps in host memory, or with slots in a file.
    _pieces: PieceSteps | None = None

    # --- groups and options -------------------------------------------------------------------------------------------

    def _take_options(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Takes the options out of the keywords of the constructor, whose arguments it checks."""
        self._resolved, self.masters = {}, MasterWeights()
        names = [*self.__signature__.parameters]
        self._check_names(keywords, names)
        chosen = {**dict(zip(names[1:], args, strict=False)), **keywords}
        _refuse_functions(chosen)
        self.check_arguments(chosen, ranges=False)
        is_default = keywords.keys().isdisjoint(OPTIONS)
        values = {name: keywords.pop(name, default) for name, default in OPTIONS.items()}
        if not is_default:
            self._check_options(values)
            self.check_arguments({"max_norm": values["max_norm"]})
        if values.pop("in_backward"):
            self._backward = InBackward(self)
        self._place_state(values.pop("state_device"))
        self._non_default = {name: value for name, value in values.items() if value != OPTIONS[name]}

    def check_arguments(self, arguments: Mapping[str, Any], *, ranges: bool = True) -> None:
        """Raises for arguments of the constructor: see `Entry.check`."""
        self.entry.check(arguments, self._named, ranges=ranges)

    def _named(self, key: str) -> str:
        """The name of an argument of the constructor in errors."""
        return f"{type(self).__name__}: {key}"

    def _place_state(self, device: Any) -> None:
        """Puts the state where ``state_device`` says."""
        if isinstance(device, HostMemory) or device == "host":
            self._host = self._pieces = PieceSteps(device if isinstance(device, HostMemory) else HostMemory())
        elif device is not None:
            self.state_file = StateFile(device)
            self._pieces = PieceSteps(HostMemory(), self.state_file)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, a dict with its hyperparameters."""
        self.defaults |= self.__dict__.pop("_non_default", {})
        group: Any = param_group  # PyTorch raises for anything but a dict.
        if isinstance(group, dict):
            places = self.entry.places
            keys = {key for key, _ in places.values()}
            # Other keys are the user's, as in PyTorch, but for names of oxigrad and misspelt ones.
            vocabulary = {"params", *self.defaults, *OPTIONS, *keys, *_KEYS}
            others = [name for name in group if isinstance(name, str) and name not in vocabulary]
            wrong = [name for name in others if name in places or nearest(name, vocabulary, _MISSPELT)]
            self._check_names(wrong, [name for name in {**self.defaults, **OPTIONS} if name not in _OF_ALL])
            _refuse_functions({name: value for name, value in group.items() if name in keys})
            self.entry.check(group, named_group(len(self.param_groups)))
            for name in _OF_ALL:
                if name in group:
                    raise TypeError(
                        f"{named_group(len(self.param_groups))(name)}: expected it in the constructor alone"
                    )
            values = {**OPTIONS, **self.defaults, **group}
            if not group.keys().isdisjoint(OPTIONS):  # those of all groups were checked
                self._check_options(values)
            if values["state_dtype"] is not None:
                self._check_slots(values)
        super().add_param_group(param_group)
        if self._backward is not None:
            self._backward.attach(self, self.param_groups[-1]["params"])

    def check_groups(self) -> None:
        """Raises `TypeError` or `ValueError`, with the key path, for values that were set in a group since.

        Tensors that a graph captures are read by its replays alone.
        """
        for number, group in enumerate(self.param_groups):
            is_captured = bool(group.get("capturable"))
            values = {
                key: value for key, value in group.items() if not (is_captured and isinstance(value, torch.Tensor))
            }
            self.entry.values(values, named_group(number))

    def _check_names(self, names: Iterable[str], arguments: Sequence[str]) -> None:
        """Raises `TypeError` for a name that is not among the ``arguments``, with PyTorch's name for it."""
        for unknown in [name for name in names if name not in arguments]:
            key, item = self.entry.places.get(unknown, ("", None))
            meant = nearest(unknown, arguments) if key not in arguments else key if item is None else f"{key}[{item}]"
            hint = f" (did you mean {meant}?)" if meant else ""
            raise TypeError(
                f"{type(self).__name__}: unknown: {unknown}{hint}; its arguments are {', '.join(arguments)}"
            )

    def _check_options(self, values: Mapping[str, Any]) -> None:
        """Raises `TypeError` or `ValueError` for options of another type, out of range, or that exclude each other."""
        checked_precision(values["state_dtype"], values["master"], values["rounding"], slot_dtype_option="state_dtype")
        check_flags(**{name: values[name] for name in ("amp_fused", "in_backward")})
        checked_number(SEED, "seed", values["seed"])

    def _check_slots(self, values: Mapping[str, Any]) -> None:
        """Raises `ValueError` for a dtype of slots without effect."""
        entry = self.entry
        absent = {slot for slot, asks in entry.rule.optional if not entry.value(asks, values, named=self._named)}
        check_slot_dtype(type(self).__name__, "state_dtype", values["state_dtype"], [(entry.rule, absent)])

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether `torch.amp.GradScaler` leaves unscaling to the step, which refuses it after steps in the backward."""
        return self._backward is not None or any(group.get("amp_fused") for group in self.param_groups)

    @_step_supports_amp_scaling.setter
    def _step_supports_amp_scaling(self, value: bool) -> None:
        """Ignores the value that PyTorch's classes set for ``fused``: ``amp_fused`` determines it."""

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, *, loss: Any = None) -> Any:
        """Takes one step with the gradients of the parameters, and returns the loss.

        Args:
            closure: a function that computes the gradients anew and returns the loss, called first, with gradients
                enabled.
            loss: the loss of the gradients, instead of the ``closure``, for optimizers that read it, such as
                MoMo. A first step at the rate zero with gradients of zero, by which loaders of checkpoints make the
                state, needs none.
        """
        if closure is not None:
            if not callable(closure):
                name = type(self).__name__
                raise TypeError(f"{name}.step: found {type(closure).__name__}, expected a closure, or step(loss=loss)")
            with torch.enable_grad():
                loss = closure()
        if not self.param_groups:  # as in PyTorch: there is nothing to update
            return loss
        found_inf = getattr(self, "found_inf", None)
        if self._backward is not None:
            self._backward.finish(self, loss)
        elif found_inf is None or not float(found_inf):
            value = 0.0 if loss is None and self._makes_state() else loss
            untraced(self._take, getattr(self, "grad_scale", None), value)
        return loss

    def _makes_state(self) -> bool:
        """Whether loaders take this step for the state of an optimizer that reads the loss: no rate, no gradients."""
        return (
            "loss" in self.entry.rule.supplied
            and not self.state
            and not any(float(group["lr"]) for group in self.param_groups)
            and not any(p.grad is not None and p.grad.any() for group in self.param_groups for p in group["params"])
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients to None, or to zero; drops sums of micro-batches in host memory."""
        super().zero_grad(set_to_none)
        if self._host is not None:
            self._host.drop_sums()

    def _take(
        self, scale: Any, loss: Any = None, places: Sequence[TensorPlace] | None = None, marks: Assignments = (), /
    ) -> bool:
        """Takes a step with gradients of ``loss * scale``, or of ``loss`` if ``scale`` is None.

        It is of all parameters, or a part of a step, of the parameters at ``places``; then makes ``marks`` with it.
        True for a part that drew random numbers.
        """
        turn = _NOTHING if self._pieces is None else self._pieces.turn()
        with turn, _NOTHING if self.state_file is None else self.state_file.writing_back():
            number = None if scale is None else float(scale)
            pieces = self._pieces if places is None else None
            if pieces is not None and any(map(torch.Tensor.is_inference, all_parameters(self))):
                refuse_inference(places_of(self))
            if pieces is not None and not self._is_left_to_torch() and without_modes(pieces.take, self, number, loss):
                return False
            key = () if places is None else tuple([id(place.tensor) for place in places])
            factor, resolved = (1.0 if number is None else number), self._resolved.get(key)
            if (
                resolved is not None
                and resolved.fits(self, scaled=scale is not None)
                and without_grad(resolved.attempt, self, factor, loss, marks) is None
            ):
                return resolved.plan.draws  # Otherwise a tensor was replaced or changed.
            self._resolved.pop(key, None)
            if is_recorded(self.param_groups) or (places is None and self._is_left_to_torch()):
                self._take_recorded(scale, loss)
                return False
            refuse_inference(places_of(self) if places is None else places)
            # A state that is made in the inference mode could not be updated outside of it.
            resolved = without_modes(self._resolve_and_take, scale is not None, factor, loss, places, marks)
            if len(self._resolved) > 2 * len(all_parameters(self)):
                self._resolved.clear()
            self._resolved[key] = resolved
            return resolved.plan.draws

    def _resolve_and_take(
        self, is_scaled: bool, factor: float, loss: Any, places: Sequence[TensorPlace] | None, marks: Assignments
    ) -> TensorStep:
        """Takes a step that is resolved anew, and returns it."""
        with kept_on_error(self.state, None if places is None else [place.tensor for place in places]):
            square = None if places is None or self._backward is None else self._backward.norm.square
            resolved = TensorStep(self, scaled=is_scaled, places=places, square=square, part=places is not None)
            resolved.take(self, factor, loss, marks)
        return resolved

    # --- steps in the backward ----------------------------------------------------------------------------------------

    def no_step(self) -> AbstractContextManager[None]:
        """A block whose backwards accumulate gradients of micro-batches: ``in_backward=True`` updates no parameter.

        The first backward after the block adds its gradients, and updates the parameters. Without ``in_backward`` it
        changes nothing. With ``state_device="host"`` gradients are added in host memory, and given back.

        >>> import torch
        >>> from oxigrad.torch import SGD
        >>> weight = torch.nn.Parameter(torch.zeros(1))
        >>> opt = SGD([weight], lr=1.0, in_backward=True)
        >>> with opt.no_step():
        ...     (2 * weight).sum().backward()
        >>> (3 * weight).sum().backward()
        >>> weight.item(), opt.step()
        (-5.0, None)
        """
        return nullcontext() if self._backward is None else self._backward.paused()

    def norm_pass(self) -> AbstractContextManager[None]:
        """A block with a backward that measures the norm of the gradients, for ``in_backward=True`` with ``max_norm``.

        It drops each gradient once it is measured. The same backward after the block updates the parameters, each as
        soon as its gradient is final, scaled down by that norm. So gradients are never all in memory, for the time of a
        second backward; the step is bit-identical to a step after the backward.

        Raises `ValueError` without ``in_backward`` or ``max_norm``, and `RuntimeError` where gradients have been
        accumulated.

        >>> import torch
        >>> from oxigrad.torch import SGD
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> opt = SGD([weight], lr=1.0, in_backward=True, max_norm=1.0)
        >>> loss = (weight * torch.tensor([30.0, 40.0])).sum()
        >>> with opt.norm_pass():
        ...     loss.backward(retain_graph=True)
        >>> loss.backward()
        >>> weight.detach(), opt.step()
        (tensor([-0.6000, -0.8000]), None)
        """
        if self._backward is None:
            raise ValueError(f"{type(self).__name__}: norm_pass() is for in_backward=True")
        return self._backward.measuring(self)

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that a backward has updated since the last ``step()``.

        After an error in a backward it tells which ones are a step ahead of the others. ``step()`` completes the step.
        """
        if self._backward is not None:
            return self._backward.step.ahead
        return [] if self._pieces is None else self._pieces.ahead

    def synchronize(self) -> None:
        """Completes a step that an error ended, of a state in host memory or a file; else it does nothing."""
        if self._pieces is not None and self._backward is None:
            self._pieces.synchronize(self)

    def _keeps_on_host(self, p: Any) -> bool:
        return self._host is not None and self._host.holds(self, p)

    def _check_whole(self) -> None:
        """Waits for an update that is under way.

        Raises `StateError` while parameters are ahead of the others, and for a forked file.
        """
        if self.state_file is not None:
            self.state_file.check_process()
        if self._backward is not None:
            self._backward.step.check_none()
        if self._pieces is not None and self._backward is None:
            if ahead := self._pieces.ahead:
                raise StateError(
                    f"{updated(ahead)} in a step that an error ended: expected synchronize() before the state is read"
                )
            self._pieces.synchronize(self)

    def _is_left_to_torch(self) -> bool:
        """Whether PyTorch's class is to take the step."""
        return False

    def _take_recorded(self, scale: Any, loss: Any) -> None:
        """Takes a step that PyTorch differentiates, or captures in a graph."""
        raise NotImplementedError

    def check_gradient(self, path: str, p: Any) -> None:
        """Raises for a gradient, or a parameter, that the optimizer does not take."""
        name = type(self).__name__
        if p.device.type == "meta":
            raise RuntimeError(f"{path}: the parameter is on the device meta, which has no data")
        if p.grad.layout is not torch.strided:
            raise RuntimeError(f"{name} does not support sparse gradients")
        if not self.entry.takes_complex and p.is_complex():
            raise RuntimeError(f"{name} does not support complex parameters")

    # --- state --------------------------------------------------------------------------------------------------------

    def points(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """The keys of tensors that the state of each parameter of a group has beside the slots of the rule."""
        return ()

    def state_dict(self) -> dict[str, Any]:
        """The state, as PyTorch's class has it.

        Raises `StateError` while parameters are `ahead`: ``step()`` comes first.
        """
        self._check_whole()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads copies from a ``state_dict`` of this class, or of PyTorch's class of this name, with its dtypes.

        Raises `StateError`, with nothing changed, for a state that is not one of this optimizer: counts that are no
        whole numbers, and slots that are missing or have another type or shape than the parameter.
        """
        check_state(self, state_dict)
        super().load_state_dict(state_dict)

    def flush(self) -> None:
        """Writes the state to the file ``state_device``, which is replaced once that is complete and on the disk.

        After a crash, `oxigrad.torch.read_state` has the state of the last flush, for ``load_state_dict``. Raises
        `ValueError` without ``state_device``; `StateError` for a file of another optimizer; `OSError`, with the file as
        it was, where it cannot be written; and what ``state_dict()`` raises.
        """
        if self.state_file is None:
            raise ValueError(f"{type(self).__name__}: flush() writes the file state_device, which is None")
        self.state_file.write(self.state_dict(), self)

    def __getstate__(self) -> dict[str, Any]:
        self._check_whole()
        if self._host is not None:
            self._host.check_no_sums()
        options = {"in_backward": self._backward is not None, "state_device": self._host and self._host.memory}
        return super().__getstate__() | {key: value for key, value in options.items() if value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._resolved, self.masters = {}, MasterWeights()
        if self._pieces is not None:
            self._pieces.reset()
        super().__setstate__({key: value for key, value in state.items() if key not in _OF_ALL})
        for group in self.param_groups:
            for name, value in self._remembered().items():
                group.setdefault(name, value)
        if self.theirs is None:
            self._count_with_tensors()
        if "in_backward" in state:
            self._backward = InBackward(self)
        if "state_device" in state:
            self._host = self._pieces = PieceSteps(state["state_device"])
        if self._backward is not None:
            self._backward.reset(self)

    def _remembered(self) -> Mapping[str, Any]:
        """The defaults for groups without them, of an older state or of PyTorch's."""
        return {name: self.defaults[name] for name in OPTIONS if name in self.defaults}

    def _count_with_tensors(self) -> None:
        """Converts step counts that are Python numbers to tensors."""
        for state in self.state.values():
            if "step" in state and not isinstance(state["step"], torch.Tensor):
                state["step"] = torch.tensor(float(state["step"]), dtype=number_dtype(), device="cpu")


def _refuse_functions(values: Mapping[str, Any]) -> None:
    """Raises `TypeError` for a hyperparameter that is a function: PyTorch's schedulers set numbers."""
    for name, value in values.items():
        if name != "params" and callable(value):
            raise TypeError(
                f"{name} is {value!r}: expected a number, which a scheduler may change, such as "
                "torch.optim.lr_scheduler.LambdaLR(opt, schedule) beside lr=1.0"
            )


def refuse_by_theirs(opt: TensorOptimizer) -> None:
    """Raises `RuntimeError` for options that the steps of PyTorch's classes do not read."""
    is_set = {"max_norm": clips(opt)}
    is_set["state_device"] = opt.state_file is not None or opt._host is not None
    for name in [name for name, is_on in is_set.items() if is_on]:
        raise RuntimeError(
            f"{name} is not supported by the steps of PyTorch's classes (differentiable, capturable, sparse "
            "gradients): expected None"
        )
