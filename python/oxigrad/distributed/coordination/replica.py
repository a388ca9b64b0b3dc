"""A copy of the parameters in host memory, and the optimizer that updates it by the gradients of all workers."""

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from oxigrad import NonFiniteError
from oxigrad._typing import Config
from oxigrad.distributed.errors import Refused, log
from oxigrad.distributed.messages import agreement, transfer
from oxigrad.distributed.messages.configuration import settings_of, values_of_functions
from oxigrad.distributed.messages.gradients import Gradients
from oxigrad.distributed.messages.message import Layout, checksum
from oxigrad.extend import Parameters, WrappingOptimizer, as_array
from oxigrad.optim import Optimizer
from oxigrad.tree import KeyPath


class Replica:
    """Parameters in flat buffers, and the optimizer that takes the steps on them.

    The coordinator has one, and every worker has another one, which takes the same steps: so each of them can continue
    the training after the loss of the others, with parameters and slots of the same bits.

    The steps read the settings of all parameters, so that the model has those that are ``frozen`` as well, which stay
    as they are. ``untrained`` are the arrays by key path that no step updates, these and others: a worker that joins
    takes those of the coordinator.

    >>> import oxigrad as ox
    >>> replica = Replica(ox.optim.SGD(0.5), ox.tree.parameters({"w": np.ones(2)}))
    >>> replica.take({"w": np.array([1.0, 2.0])})
    >>> replica.arrays
    {'w': array([0.5, 0. ])}
    """

    layout: Layout
    untrained: Mapping[str, np.ndarray]
    step: int

    def __init__(
        self,
        optimizer: Optimizer,
        parameters: Mapping[KeyPath, np.ndarray],
        frozen: Mapping[KeyPath, Any] = MappingProxyType({}),
        untrained: Mapping[str, np.ndarray] = MappingProxyType({}),
    ) -> None:
        arrays = {str(path): array for path, array in parameters.items()}
        self.optimizer = optimizer
        self.layout = Layout(arrays)
        self._buffers = self.layout.pack(arrays, self.layout.empty())
        #: The parameters by key path, as views that are not to be written to.
        self.arrays: dict[str, np.ndarray] = self.layout.views(self._buffers)
        self._paths = {str(path): path for path in parameters}
        self._frozen = frozen
        self.untrained = untrained
        self._model = Parameters.nested({**self.by_path(), **frozen})
        #: The step of the optimizer, as the replica left it.
        self.step = optimizer.step
        # The answers in a row after which it differed from the coordinator's, and the settings of both optimizers when
        # it took the latter's state.
        self._times_apart, self._settings = 0, ({}, {})

    def copy(self) -> "Replica":
        """A replica of the same parameters and state, with an optimizer of its own."""
        return Replica(copy.deepcopy(self.optimizer), self.by_path(), self._frozen, self.untrained)

    def is_of(self, parameters: Mapping[KeyPath, np.ndarray], optimizer: Optimizer) -> bool:
        """Whether the replica left these parameters and the state of this optimizer by its last step."""
        arrays = {str(path): array.tobytes() for path, array in parameters.items()}
        return optimizer.step == self.step and arrays == {path: a.tobytes() for path, a in self.arrays.items()}

    def take(self, gradients: Gradients) -> NonFiniteError | None:
        """One step of the optimizer by gradients by key path.

        Where the optimizer refuses it by ``nonfinite="raise"``, all replicas skip the step: returns the error, which
        each worker raises.
        """
        by_path = Parameters.nested(
            dict(zip(self._paths.values(), map(gradients.__getitem__, self._paths), strict=True))
        )
        try:
            self._model = WrappingOptimizer.take_step(self.optimizer, self._model, by_path)
        except NonFiniteError as error:
            return error
        self.step = self.optimizer.step
        return None

    def by_path(self) -> dict[KeyPath, np.ndarray]:
        """As `arrays`, by key paths that are not texts."""
        return {path: self.arrays[text] for text, path in self._paths.items()}

    def description(self, config: Any) -> np.ndarray:
        """The description of the parameters and of the wrapper's ``config``, equal on all workers of a training."""
        return agreement.described(self.arrays, config, self.untrained)

    def checksum(self) -> int:
        """The CRC-32C of the parameters, which differs between replicas that took other steps."""
        return checksum(self._buffers)

    def agrees(self, expected: int, whose: str) -> bool:
        """Whether the coordinator's replica has the checksum ``expected``, as that of the worker ``whose``.

        Raises `Refused` where it has had another one for many steps, and the optimizer has other hyperparameters. A
        difference that they do not explain is logged.
        """
        if checksum(self._buffers) == expected:
            self._times_apart = 0
            return True
        self._times_apart += 1
        if self._times_apart > agreement.ROUNDS and self._settings[1]:
            if (unlike := agreement.unlike_config(*self._settings, whose)) is not None:
                raise Refused("config", f"{unlike}, as of the coordinator: set it on every worker")
            if self._times_apart == agreement.ROUNDS + 1:
                text = (
                    "%s has other parameters than the coordinator after each of %d steps, which sends its state each "
                    "time: expected the same rule on every worker"
                )
                log.warning(text, whose, agreement.ROUNDS)
        return False

    def packed_state(self) -> np.ndarray:
        """The state of the optimizer as bytes, with settings and untrained arrays, but without parameters."""
        return transfer.pack(self.untrained, {**self.optimizer.state_dict(copy=False), "config": self._present()})

    def _present(self) -> Config:
        """The settings of the optimizer, with the values of functions at this step."""
        return {**settings_of(self.optimizer), **values_of_functions(self.optimizer)}

    def load(self, parameters: Gradients, packed: np.ndarray) -> None:
        """Takes the parameters and the `packed_state` of another replica. Raises before anything is changed."""
        arrays = {path: as_array(parameters[path]) for path in self.arrays}
        untrained, state = transfer.unpack(packed)
        self.optimizer.load_state_dict(state)
        self.untrained, self.step = untrained, self.optimizer.step
        self._settings = self._present(), state["config"]
        for path, array in arrays.items():
            np.copyto(self.arrays[path], array)
