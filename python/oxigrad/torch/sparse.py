"""Adam for sparse gradients: only the rows with gradients are updated."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from oxigrad.ops.core.aliasing import Named, refuse_overlapping
from oxigrad.stepping.arrays.quantized import CODECS
from oxigrad.stepping.parameters.executor import HOST
from oxigrad.stepping.parameters.parameter import Parameter
from oxigrad.stepping.plan.assignment import Assignment
from oxigrad.stepping.plan.programs import step_once
from oxigrad.stepping.plan.step_program import StepProgram
from oxigrad.stepping.slots.view import ParameterSlots
from oxigrad.stepping.state.step_count import check_step_count
from oxigrad.stepping.version import Version
from oxigrad.torch.drop_in import DropIn
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion


class _Table(NamedTuple):
    """A parameter as a table of rows: its state, its rule, its tensors and the values of its gradient by row."""

    path: str
    state: dict[str, Any]
    group: TensorGroup
    #: The parameter and its slots, and these as tables: copies of those that are not contiguous.
    tensors: list[Any]
    tables: list[Any]
    rows: Any
    values: Any

    def slots(self) -> ParameterSlots:
        """The slots as tables."""
        names = [slot.name for slot in self.group.rule().slots]
        return ParameterSlots(self.path, dict(zip(names, self.tables[1:], strict=True)), Version())

    def memory(self) -> Iterator[Named]:
        """Its tensors in memory, with names for errors, and whether they are written."""
        yield self.path, self.tensors[0], True
        yield from ((f"a slot of {self.path}", slot, True) for slot in self.tensors[1:])
        yield f"the gradient of {self.path}", self.values, False


class SparseDropIn(DropIn):
    """Base class of SparseAdam: each gradient is a table of rows, whose leading axes are the sparse ones."""

    def _take_options(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        for name in ("max_norm", "in_backward", "state_device"):
            if keywords.get(name):
                raise TypeError(f"SparseAdam does not support {name}, since it updates rows of sparse gradients")
        super()._take_options(args, keywords)

    def _check_precision(self, values: Mapping[str, Any]) -> None:
        """See `TensorOptimizer._check_precision`."""
        super()._check_precision(values)
        refused = {"state_dtype": CODECS, "master": (True,), "rounding": ("kahan",)}
        for name, choices in refused.items():
            if values[name] is not None and values[name] in choices:
                text = (
                    f"SparseAdam: {name}={values[name]!r} is not supported, since it updates rows of the parameter "
                    "and its moments alone"
                )
                raise ValueError(text)

    def _take(self, scale: Any, loss: Any = None, *part: Any) -> bool:
        with torch.inference_mode(False), torch.no_grad(), conversion.kept_on_error(self.state):
            counted, tables = [], []
            self.check_groups()
            for path, number, p in self._with_gradients():
                state = self.state[p]
                group = TensorGroup(
                    self.entry, self.param_groups[number], None, number=number, scaled=scale is not None
                )
                table = self._table(path, group, p, state)
                counted.append(state)
                tables += [table] if table.values.numel() else []
            if tables:
                _update(tables, 1.0 if scale is None else 1.0 / float(scale))
            for state in counted:
                state["step"] += 1
        return False

    def _with_gradients(self) -> Iterator[tuple[str, int, Any]]:
        """The parameters that have gradients, with the names for errors and the indices of the groups."""
        for number, group in enumerate(self.param_groups):
            for at, p in enumerate(group["params"]):
                if p.grad is not None and not p.grad.is_sparse:
                    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                if p.grad is not None:
                    yield f"param_groups[{number}]['params'][{at}]", number, p

    def _table(self, path: str, group: TensorGroup, p: Any, state: dict[str, Any]) -> _Table:
        conversion.check_readable(path, p, state)
        gradient = p.grad.coalesce()
        indices, values = gradient.indices(), gradient.values()
        is_new = "step" not in state
        conversion.begin(group, path, p, state, HOST)
        if is_new:
            state["step"] = 0  # PyTorch's class counts by a number
        check_step_count(state["step"], f"{path}: the state has step")
        tensors = [p.detach(), state["exp_avg"], state["exp_avg_sq"]]
        if not all(tensor.device.type == "cpu" for tensor in (*tensors, values)):
            raise RuntimeError(f"{path}: SparseAdam updates tensors in host memory")
        rows = torch.zeros_like(indices[0])
        for extent, index in zip(p.shape, indices, strict=False):
            rows = rows * extent + index
        row = p.shape[len(indices) :]
        tables = [tensor.contiguous().view(-1, *row) if values.numel() else tensor for tensor in tensors]
        return _Table(path, state, group, tensors, tables, rows.numpy(), values.reshape(len(rows), *row))


def _update(tables: list[_Table], inverse_scale: float) -> None:
    """Updates the rows of all parameters, or raises and updates none."""
    refuse_overlapping([named for table in tables for named in table.memory()])
    plan, arrays = Assignment(), [table.tables[0] for table in tables]
    plan.parameters = [
        Parameter(
            [],
            table.path,
            number,
            (),
            tuple(moved.shape),
            moved.dtype,
            plan.group_number(table.group, -int(table.state["step"])),
            number,
        )
        for number, (table, moved) in enumerate(zip(tables, arrays, strict=True))
    ]
    plan.unite(arrays)
    program = StepProgram(plan, seed=0)
    program.fill(0, 1, inverse_scale)
    step_once(
        program.host_parameters(arrays, {table.path: table.slots() for table in tables}),
        tuple(arrays),
        tuple([table.values for table in tables]),
        programs=program.programs,
        touched=[(number, table.rows, []) for number, table in enumerate(tables)],
    )
    for table in tables:
        for tensor, copy in zip(table.tensors, table.tables, strict=True):
            if copy.data_ptr() != tensor.data_ptr():
                tensor.copy_(copy.view(tensor.shape))
