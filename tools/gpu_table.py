"""The table of docs/gpu.md of what is proved of steps on GPUs.

Each row is a property, the tests that prove it without hardware, and the date on which it was proved on hardware, with the card. A test
checks that the named tests exist and that the page states the table.
"""

from __future__ import annotations

import dataclasses

from printed_tables import DOCS, PrintedTable, markdown

PRINTED = PrintedTable("gpu.md", "proofs")


@dataclasses.dataclass(frozen=True)
class Claim:
    """A property of steps on GPUs: the test functions that prove it without hardware, and where it was proved on hardware."""

    text: str
    #: ``file::function``, below tests/; none for what only hardware shows.
    tests: tuple[str, ...] = ()
    #: The date and the card, such as "2026-11-22, H100"; empty for not yet.
    on_hardware: str = ""


#: The date and the card of the last run; of ``make test-gpu``, a sample of the combinations.
RUN = "2026-11-27, H100"

CLAIMS = [
    Claim(
        "Each operation of a kernel is bit-identical to the CPU core",
        ("cuda/test_bits.py::test_an_op_has_the_bits_of_its_scalar_meaning",),
    ),
    Claim(
        "The kernel text, compiled for the host, is bit-identical to a step in host memory: every rule x dtype x option",
        (
            "cuda/test_bits.py::test_a_step_has_the_bits_of_the_host",
            "cuda/test_bits.py::test_the_combinations_are_counted",
        ),
    ),
    Claim(
        "Sanitizers find no access out of bounds and no undefined arithmetic in this text, with any option",
        ("cuda/test_bits.py::test_no_access_is_out_of_bounds_and_no_arithmetic_undefined",),
        f"{RUN}: AdamW, by compute-sanitizer",
    ),
    Claim(
        "The PTX that NVRTC compiles is bit-identical too, in an interpreter",
        (
            "cuda/test_ptx_rules.py::test_a_step_has_the_bits_of_the_host",
            "cuda/test_ptx_rules.py::test_an_entry_is_compiled_beside_others_as_it_is_alone",
            "cuda/test_ptx.py",
        ),
    ),
    Claim(
        "The PTX has no approximation, no flush of subnormal numbers, and fuses only what the rule fuses",
        (
            "cuda/test_ptx_rules.py::test_a_step_has_the_bits_of_the_host",
            "cuda/test_ptx_rules.py::test_later_steps_and_longer_leaves",
        ),
    ),
    Claim(
        "No kernel spills registers, and all kernels read and write 16 bytes at a time, from sm_80 to sm_120 (`make device-report`)",
        (
            "cuda/test_device_table.py::test_a_few_rules_have_no_fault",
            "cuda/test_device_table.py::test_a_kernel_that_would_spill_gets_more_registers",
        ),
    ),
    Claim(
        "`update` is bit-identical to the host, with a mock driver that runs the text: every rule, and options of precision",
        (
            "cuda/test_device_step.py::test_every_optimizer_gives_the_bits_of_the_host",
            "cuda/test_device_step.py::test_options_of_precision",
        ),
        RUN,
    ),
    Claim(
        "Chains, averages, global norms and checked gradients are bit-identical to the host too",
        ("cuda/test_device_step.py::test_chains_and_options",),
        RUN,
    ),
    Claim(
        "A plain rule launches one kernel for all parameters of a dtype",
        ("cuda/test_device_step.py::test_a_plain_rule_is_one_launch",),
        RUN,
    ),
    Claim(
        "Optimizers of `oxigrad.torch` launch kernels, and train modules bit-identically to the host",
        ("cuda/test_device_modules.py::test_a_module_has_the_bits_of_the_host",),
        RUN,
    ),
    Claim("NVRTC compiles for an architecture, or the error names it", ("cuda/test_compiler.py",)),
    Claim(
        "Every optimizer chooses correctly between kernels and array functions, on CuPy-like arrays and CUDA tensors",
        (
            "cuda/test_routes.py::test_elementwise_rules_are_kernels",
            "cuda/test_routes.py::test_tensors_on_cuda_take_kernels",
            "cuda/test_routes.py::test_rules_of_matrices_are_called_on_arrays",
        ),
    ),
    Claim(
        "Derivatives of CUDA tensors are computed without copies to the host and without synchronization",
        ("cuda/test_autodiff.py::test_every_function", "cuda/test_autodiff.py::test_transforms"),
        f"{RUN}, except for masks, and for PyTorch's solvers and matrix decompositions",
    ),
    Claim(
        "Rules on CUDA tensors neither copy nor wait",
        ("cuda/test_routes.py::test_rules_on_tensors_neither_copy_nor_wait",),
        f"{RUN}, except for Shampoo, SOAP and GaLore over PyTorch, whose decompositions wait",
    ),
    Claim("Bad input is refused before anything is changed", ("cuda/test_device_bad_input.py",), RUN),
    Claim(
        "Shrunk storages and shared memory are refused, in the first step and in later ones",
        ("cuda/test_device_modules.py::test_a_shrunk_storage_is_refused", "cuda/test_device_overlap.py"),
        RUN,
    ),
    Claim("Streams, CUDA graphs and driver failures work with a mock driver", ("cuda/test_launch.py",), RUN),
    Claim(
        "In `oxigrad.torch`, `state_device`, `in_backward`, clipping, low precision, schedulers and state dicts keep the bits of plain steps",
        (
            "torch_optim/test_host_memory.py",
            "torch_optim/test_host_sums.py",
            "torch_optim/test_in_backward.py",
            "torch_optim/test_clipped_backward.py",
            "torch_optim/test_training.py",
        ),
        RUN,
    ),
    Claim(
        "Every wrapper for several workers trains models on devices like models in host memory",
        ("distributed/test_models_on_devices.py",),
        f"{RUN}: `DataParallel`, `DistributedDataParallel` and FSDP2 in one process of NCCL",
    ),
    Claim(
        "Counts follow the order of streams, and device memory is bounded and freed, with a mock driver that delays its work",
        ("cuda/test_lifetimes.py",),
    ),
    Claim(
        "Different releases of compiler, driver and bindings work together, or a warning names them",
        ("cuda/test_driver.py",),
    ),
    Claim(
        "Through cuda-bindings, memory is neither freed nor written too early, and streams and graphs are in order. "
        "A driver in host memory tests this: it runs all work as late as allowed",
        (
            "cuda/test_under_fake_driver.py::test_steps_that_no_host_waits_for",
            "cuda/test_under_fake_driver.py::test_optimizers_that_end_while_their_work_is_queued",
            "cuda/test_under_fake_driver.py::test_two_graphs",
            "cuda/test_fake_driver.py::test_tests_of_devices",
        ),
    ),
    Claim(
        "Kernels on a GPU are bit-identical, with CuPy and PyTorch (`make gpu-smoke`, `make test-gpu`)",
        on_hardware=RUN,
    ),
    Claim("Streams and CUDA graphs work on a GPU", on_hardware=RUN),
    Claim("XLA runs derivatives and steps over JAX on a GPU", on_hardware=RUN),
    Claim(
        "Bandwidth, and host time beside PyTorch's fused optimizers (`make versus-gpu`)",
        on_hardware=f"{RUN}: [figures](design/performance.md#on-a-gpu)",
    ),
]


def table() -> str:
    """The table, in Markdown."""
    return markdown(("", "proved without hardware", "proved on hardware"), map(_row, CLAIMS))


def _row(claim: Claim) -> tuple[str, ...]:
    files = sorted({test.split("::")[0].rsplit("/", 1)[-1] for test in claim.tests})
    return claim.text, ", ".join(f"`{file}`" for file in files) or "not possible", claim.on_hardware or "not yet"


def missing() -> list[str]:
    """The tests that are named and do not exist."""
    found = []
    for test in (test for claim in CLAIMS for test in claim.tests):
        file, _, function = test.partition("::")
        path = DOCS.parent / "tests" / file
        if not path.exists() or (function and f"def {function}(" not in path.read_text(encoding="utf-8")):
            found.append(test)
    return found


def print_proofs() -> None:
    """Writes the table."""
    PRINTED.print(table())
