"""The table of registers, spills and access widths, and the faults that it finds."""

import re

import pytest

import device_report
import machine_code
from oxigrad.cuda import compiler
from oxigrad.cuda.compiler import Compiler, compile_text

ARCHITECTURES = device_report.ARCHITECTURES


@pytest.fixture
def text(nvrtc: Compiler) -> str:
    (text,) = device_report.sources("adamw", "float32")
    return text


def test_a_few_rules_have_no_fault(nvrtc: Compiler) -> None:
    lines: list[str] = []
    arguments = ["--rules", "adamw", "lamb", "--dtypes", "float32", "8bit", "--processes", "1"]
    assert device_report.main([*arguments, "--architectures", "sm_80", "sm_120"], lines.append) == 0, lines
    assert [line.split()[:2] for line in lines[1:5]] == [
        [rule, dtype] for rule in ("adamw", "lamb") for dtype in ("float32", "8bit")
    ]
    registers, loads, stores = (
        list(map(int, each)) for each in ([lines[1].split()[2]], [lines[1].split()[4]], [lines[1].split()[5]])
    )
    assert 20 < registers[0] < 80 and loads == [4] and stores == [3]
    assert re.match(r"NVRTC \d+\.\d+ .*registers by its log", lines[5])


def test_expected_accesses(text: str) -> None:
    assert device_report.expected(text) == {"update_0": (4, 3)}
    (codes,) = device_report.sources("lion", "8bit")  # 16 elements: four loads of each of two arrays, and one of codes
    assert device_report.expected(codes) == {"update_0": (9, 5)}


def test_a_narrow_load_is_a_fault(text: str) -> None:
    narrow = re.sub(r"const bool aligned = .*;", "const bool aligned = false;", text)
    assert narrow != text
    found = device_report.examined(narrow, "sm_90").faults
    assert found == (
        "update_0 has 0 loads of 16 bytes, expected 4",
        "update_0 has 0 stores of 16 bytes, expected 3",
    )
    assert device_report.examined(text, "sm_90").faults == ()


# 64 values that are all needed to the end, in a kernel that may have 32 registers, as the only update of a text.
SPILLING = """
extern "C" __global__ void __launch_bounds__(1024) update_0(float *const x) {
    char *const a0 = (char *)x + start * 4;
    const ox_u32 first = threadIdx.x * 4;
    float v[96];
#pragma unroll
    for (int i = 0; i < 96; i++) v[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 95; i >= 0; i--) { sum = sum * v[i] + v[(i * 7) % 96]; x[i * 1024 + threadIdx.x] = sum; }
}
"""


def test_a_spill_is_a_fault(nvrtc: Compiler) -> None:
    faults = device_report.examined(
        f"typedef unsigned int ox_u32;\nconstexpr int start = 0;\n{SPILLING}", "sm_90"
    ).faults
    assert len(faults) == 1
    assert re.match(r"update_0 uses local memory: \d+ bytes of stack, spills of [1-9]\d* bytes", faults[0])


@pytest.mark.parametrize(
    ("rule", "dtype", "architecture"),
    [
        ("fromage", "float32", "sm_80"),
        ("radam", "float64", "sm_80"),
        ("ftrl", "float16", "sm_120"),
        ("fromage", "float64", "sm_100"),
    ],
)
def test_a_kernel_that_would_spill_gets_more_registers(
    nvrtc: Compiler, rule: str, dtype: str, architecture: str
) -> None:
    (source,) = device_report.sources(rule, dtype)
    options = (f"--gpu-architecture={architecture}", *compiler.OPTIONS)
    at_first = compiler._resources(compiler._compiled(source, options, "CUBIN")[0])
    found = compile_text(source, architecture, cache=None).resources
    assert sum(each.stack + each.spill_stores for each in found.values()) == 0
    assert max(each.registers for each in found.values()) >= max(each.registers for each in at_first.values())


def test_a_pointer_to_any_memory_is_a_fault(text: str) -> None:
    generic = re.sub(r"(?m)^ +OX_GLOBAL\(.*\);?$", "", text)
    (fault,) = device_report.examined(generic, "sm_90").faults[:1]
    assert re.fullmatch(r"update_0 has \d+ accesses of memory that is not known to be global", fault)


def test_a_fault_fails_the_run(nvrtc: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(text: str, architecture: str) -> device_report.Found:
        return device_report.Found(40, 4, 3, 0.1, ("update_0 spills",))

    monkeypatch.setattr(device_report, "examined", wrong)
    lines: list[str] = []
    arguments = ["--rules", "sgd", "--dtypes", "float32", "--architectures", "sm_90", "--processes", "1"]
    assert device_report.main(arguments, lines.append) == 1
    assert lines[-1] == "FAULT sgd, float32, sm_90: update_0 spills"


WIDTHS = """
extern "C" __global__ void widths(float* x, int* y, double* z, unsigned char* b, short* h) {
  __shared__ float s[256];
  float v[64];
  for (int i = 0; i < 64; i++) v[y[i] & 63] = x[i];
  s[threadIdx.x] = v[y[threadIdx.x] & 63];
  __syncthreads();
  z[threadIdx.x] = s[255 - threadIdx.x];
  b[threadIdx.x] ^= 3;
  h[threadIdx.x] = b[3];
  ((float4*)x)[threadIdx.x] = ((float4*)z)[threadIdx.x];
}
"""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_accesses_are_those_of_the_disassembler(nvrtc: Compiler, architecture: str) -> None:
    program = machine_code.disassembler()
    if program is None:
        pytest.skip("nvdisasm is not installed")
    code = compile_text(WIDTHS, architecture, cache=None).code
    found = machine_code.accesses(code)
    assert found == machine_code.disassembled(code, program)
    assert found["widths"]["LDG", 128] == found["widths"]["STG", 128] == 1 and found["widths"]["STL", 32] > 0
    assert found["widths"]["STG", 64] == found["widths"]["STG", 16] == found["widths"]["STG", 8] == 1
