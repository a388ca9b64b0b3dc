"""Adam for sparse gradients: only the rows with gradients are updated."""

from typing import Any

from oxigrad import _core
from oxigrad.torch import state
from oxigrad.torch.choice import Choice
from oxigrad.torch.drop_in import DropIn
from oxigrad.torch.library import torch


class SparseDropIn(DropIn):
    """Base class of SparseAdam: each gradient is a table of rows, whose leading axes are the sparse ones."""

    def _take(self, scale: Any) -> None:
        with torch.no_grad():
            for number, group in enumerate(self.param_groups):
                for at, p in enumerate(group["params"]):
                    if p.grad is not None and not p.grad.is_sparse:
                        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                    if p.grad is not None:
                        self._update(f"param_groups[{number}]['params'][{at}]", group, p, scale)

    def _update(self, path: str, group: dict[str, Any], p: Any, scale: Any) -> None:
        choice = Choice(self.entry, group, None, scaled=scale is not None)
        own = self.state[p]
        own.setdefault("step", 0)
        state.begin(choice, path, p, own, "host")
        gradient = p.grad.coalesce()
        indices, values = gradient.indices(), gradient.values()
        is_begun = own["step"] or group["lr"] or torch.count_nonzero(values)
        if is_begun and values.numel():
            table = (-1, *p.shape[len(indices) :])
            arrays = [p.detach(), own["exp_avg"], own["exp_avg_sq"]]
            if not all(array.device.type == "cpu" for array in arrays):
                raise RuntimeError(f"{path}: SparseAdam updates tensors in host memory")
            rows = torch.zeros_like(indices[0])
            for extent, index in zip(p.shape, indices, strict=False):
                rows = rows * extent + index
            # The core takes tables of rows: those of other tensors are copies, and copied back.
            in_rows = [array.contiguous() for array in arrays]
            moved, mean, square = [array.view(table) for array in in_rows]
            core = _core.Stepper()
            slots = [("m", mean), ("v", square)]
            core.prepare(
                [
                    _core.HostParameter(
                        path=path,
                        position=0,
                        array=moved,
                        slots=slots,
                        numbers=[],
                        catches_up=False,
                        stochastic=False,
                        program=0,
                        scalar_set=0,
                    )
                ]
            )
            scalars = [own["step"] + 1.0, *choice.read(1.0 if scale is None else 1.0 / float(scale))]
            touched = [(0, rows.numpy(), [])]
            values = values.reshape(len(rows), *table[1:])
            core.step(True, (moved,), (values,), programs=[(choice.program(), [scalars])], seed=0, touched=touched)
            for array, copy in zip(arrays, in_rows, strict=True):
                if copy is not array:
                    array.copy_(copy)
        own["step"] += 1 if is_begun else 0
