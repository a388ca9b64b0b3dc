"""Steps through the real cuda-bindings, over a driver in host memory: see `libcuda/libcuda.cpp`.

What the mock driver cannot show is shown: conversions of arguments, their lifetimes, and the order of work that nothing waits for. The tests are
run in a process of their own, in which no other library looks for a device.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import executor
import pytest

HERE = Path(__file__).parent
# Tests by the mock driver that run over this one too, as they do on a GPU: some of each module.
SOME = {
    "test_launch.py": "not pytorch",
    "test_device_layouts.py": "same or reasons or codes",
    "test_device_codes.py": "adamw or checked or assigned or copy",
    "test_device_scale.py": "adamw or copies or optimizers or capture or treatment",
    "test_device_bad_input.py": "capture or share or (OUT_OF_MEMORY and not load)",
    "test_device_step.py": "replays or graph or capture or skipped or copy or (precision and bfloat16)",
}


def outcomes(*arguments: str) -> dict[str, int]:
    """Runs tests over the fake driver; the number of tests by outcome, none of which is a failure."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "--fake-driver",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *arguments,
    ]
    found = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True, timeout=900, check=False)
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
    return {what: int(number) for number, what in re.findall(r"(\d+) (\w+)", found.stdout.splitlines()[-1])}


@pytest.fixture(autouse=True)
def needed() -> None:
    """The prerequisites of these tests: g++, the bindings, and NVRTC, which is asked for the architectures that it knows."""
    if executor.COMPILER is None:
        pytest.skip("g++ is missing")
    if sys.platform != "linux":
        pytest.skip("libcuda.so.1 is the driver of Linux")
    pytest.importorskip("cuda.bindings")


def test_steps_of_which_no_host_knows_when_they_are_done(nvrtc: object) -> None:
    found = outcomes(str(HERE / "test_under_fake_driver.py"))
    assert found["passed"] > 50 and "skipped" not in found


def test_tests_of_devices(nvrtc: object) -> None:
    """The tests that run on a GPU with --gpu, so that this road is known to work."""
    names = " or ".join(f"({name.removesuffix('.py')} and ({chosen}))" for name, chosen in SOME.items())
    found = outcomes("-k", names, *(str(HERE / name) for name in SOME))
    assert found["passed"] > 70
    assert found.get("skipped", 0) < 30  # each with its reason: what only a mock driver does


def test_a_machine_with_a_gpu_has_what_its_tests_import() -> None:
    """``pytest --gpu`` collects the tests of devices where nothing is installed but NumPy, PyTorch and what ``make wheels`` gathers."""
    pytest.importorskip("torch")
    paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(HERE)])
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-p", "bare", "-p", "no:cacheprovider", "-q", "--gpu", "--collect-only"]
    found = subprocess.run(
        command, cwd=HERE.parent.parent, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-2000:]
    for name in (*SOME, "test_on_hardware.py"):
        assert found.stdout.count(f"tests/cuda/{name}::") > 10, name
