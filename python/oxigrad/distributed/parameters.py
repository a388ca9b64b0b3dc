"""The parameters of a model as workers exchange them."""

from collections.abc import Collection, Mapping
from typing import Any, overload

import numpy as np

from oxigrad import SparseRows, StructureError
from oxigrad._typing import Tree
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.extend import Parameters, to_host


class WorkerParameters(Parameters):
    """The parameters of a wrapper, with the shape and dtype of each gradient."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__(optimizer)
        self._specs: tuple[Any, dict[str, GradientSpec]] | None = None

    def of_core(self, model: Tree) -> dict[str, np.ndarray]:
        """The parameters that the core updates, by key path. Their bits are the same on every machine."""
        plan, leaves = self._planned(model)
        return {p.text: np.asarray(to_host(leaves[p.index])) for p in plan.parameters if p.executor.is_core}

    def wide(self, model: Tree) -> dict[str, np.ndarray]:
        """As `read`, in float32 where they are of half precision."""
        return {path: promoted(value) for path, value in self.read(model).items()}

    def specs(self, model: Tree) -> Mapping[str, GradientSpec]:
        """Shape and dtype of the gradient of each parameter, by key path."""
        self._planned(model)
        return self.last_specs()

    def last_specs(self) -> Mapping[str, GradientSpec]:
        """As `specs`, of the model that was read last."""
        plan = self._plan
        if self._specs is None or self._specs[0] is not plan:
            self._specs = plan, {p.text: GradientSpec.of(p) for p in (plan.parameters if plan else ())}
        return self._specs[1]


def check_unchanged(paths: Collection[str], expected: Collection[str], method: str) -> None:
    """Raises `StructureError` if the parameters at ``paths`` differ from the ones that the ``method`` began with."""
    if changed := sorted({*paths} ^ {*expected}):
        raise StructureError(
            f"{changed[0]}: the parameter was added, removed or frozen: {method} expects the same ones in each step"
        )


@overload
def promoted(array: np.ndarray) -> np.ndarray: ...


@overload
def promoted(array: np.ndarray | SparseRows) -> np.ndarray | SparseRows: ...


def promoted(array: np.ndarray | SparseRows) -> np.ndarray | SparseRows:
    """The array or rows, in float32 if they are of half precision."""
    if isinstance(array, SparseRows):
        return SparseRows(array.indices, promoted(array.values), array.shape)
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array
