"""Adam for sparse gradients: only the rows with gradients are updated."""

from collections.abc import Mapping
from typing import Any

from oxigrad.step.arrays.quantized import CODECS
from oxigrad.step.plan.programs import step_once
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.torch.drop_in import DropIn
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import TensorPlan


class SparseDropIn(DropIn):
    """Base class of SparseAdam: each gradient is a table of rows, whose leading axes are the sparse ones."""

    def _take_options(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        for name in ("max_norm", "in_backward", "state_device"):
            if keywords.get(name):
                raise TypeError(f"SparseAdam does not support {name}, since it updates rows of sparse gradients")
        super()._take_options(args, keywords)

    def _check_options(self, values: Mapping[str, Any]) -> None:
        """See `TensorOptimizer._check_options`."""
        super()._check_options(values)
        refused = {"state_dtype": CODECS, "master": (True,), "rounding": ("kahan",)}
        for name, choices in refused.items():
            if values[name] is not None and values[name] in choices:
                text = (
                    f"SparseAdam: {name}={values[name]!r} is not supported, since it updates rows of the parameter "
                    "and its moments alone"
                )
                raise ValueError(text)

    def check_gradient(self, path: str, p: Any) -> None:
        """Raises `RuntimeError` for a dense gradient, and for tensors outside of host memory."""
        if not p.grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        if not all(
            tensor.device.type == "cpu"
            for tensor in (p, p.grad, *self.state.get(p, {}).values())
            if hasattr(tensor, "device")
        ):
            raise RuntimeError(f"{path}: SparseAdam updates tensors in host memory")

    def _take(self, scale: Any, loss: Any = None, *part: Any) -> bool:
        with torch.inference_mode(False), torch.no_grad(), conversion.kept_on_error(self.state):
            self.check_groups()
            counts = {id(p): state["step"] for p, state in self.state.items() if "step" in state}
            plan = TensorPlan(self, scaled=scale is not None, recorded=False)
            program = StepProgram(plan, seed=int(self.param_groups[0].get("seed") or 0))
            program.fill(plan.count, 1, 1.0 if scale is None else 1.0 / float(scale))
            _update(program)
            for p in plan.parameters:
                p.state["step"] = counts.get(id(p.tensor), 0) + 1  # PyTorch's class counts by a number
            if plan.draws:
                self.param_groups[0]["noise_step"] = plan.count + 1
        return False


def _update(program: StepProgram) -> None:
    """Updates the rows of all parameters, or raises and updates none."""
    plan, gradients = program.plan, [p.tensor.grad.coalesce() for p in program.plan.parameters]
    plan.refuse_shared([*map(plan.read, plan.tensors)], [g.values() for g in gradients], plan.slots)
    parameters, written, read, touched, copies = [], [], [], [], []
    for p, g in zip(plan.parameters, gradients, strict=True):
        if not g.values().numel():
            continue
        rows = torch.zeros_like(g.indices()[0])
        for extent, index in zip(p.shape, g.indices(), strict=False):
            rows = rows * extent + index
        row = p.shape[len(g.indices()) :]
        slots = program.groups[p.group].rule.slots
        tensors = [plan.read(p.tensor), *(plan.slots[p.text][slot.name] for slot in slots)]
        # Views, and copies of tensors that are not contiguous.
        tables = [tensor.contiguous().view(-1, *row) for tensor in tensors]
        copies += [(a, b) for a, b in zip(tensors, tables, strict=True) if a.data_ptr() != b.data_ptr()]
        parameters.append(program.host_parameter(p, tables[0], [*zip(slots, tables[1:], strict=True)], first=0))
        touched.append((len(touched), rows.numpy(), []))
        written.append(tables[0])
        read.append(g.values().reshape(len(rows), *row))
    if not parameters:
        return
    step_once(
        parameters,
        tuple(written),
        tuple(read),
        programs=program.programs_of_all,
        count=plan.count,
        seed=program.seed,
        touched=touched,
    )
    for tensor, table in copies:
        tensor.copy_(table.view(tensor.shape))
