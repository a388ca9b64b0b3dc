"""``python -m oxigrad doctor``: what is found, what is missing, and a self-test that fails where results are wrong."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, doctor, optim
from oxigrad.__main__ import main
from oxigrad.cuda import compiler, driver


def test_the_command_reports_json_and_succeeds() -> None:
    command = [sys.executable, "-m", "oxigrad", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    found = {each["subject"]: each["found"] for each in report["findings"]}
    assert found["oxigrad"] == ox.__version__ and found["numpy"] == np.__version__
    assert found["instruction set"] == _core.instruction_set() in ("avx512", "avx2", "neon", "scalar")
    assert found["threads"].isdigit() and "NVRTC" in found and "CUDA driver" in found
    assert report["failed"] == [] and len(report["self_test"]) >= 5


def test_the_version_is_printed_and_stated_in_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0 and capsys.readouterr().out == f"oxigrad {ox.__version__}\n"
    citation = Path(__file__).parent.parent / "CITATION.cff"
    if citation.exists():
        assert "\nversion:" not in citation.read_text()  # Cargo.toml has it


def test_text_and_advice(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler() -> Any:
        raise compiler.CompilerUnavailableError("NVRTC was not found: a test")

    def no_driver() -> Any:
        raise driver.DriverUnavailableError("there is no CUDA driver: a test")

    monkeypatch.setattr(compiler, "compiler", no_compiler)
    monkeypatch.setattr(driver, "driver", no_driver)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("NVRTC"))
    assert lines[at].endswith("not found") and "pip install 'oxigrad[cuda]'" in lines[at + 1]
    at = next(number for number, line in enumerate(lines) if line.startswith("CUDA driver"))
    assert lines[at].endswith("not found") and "there is no CUDA driver: a test" in lines[at + 1]
    assert not any("compiled for" in line for line in lines)
    assert sum("passed in" in line for line in lines) == 5


@pytest.mark.parametrize("as_json", [False, True])
def test_a_wrong_step_fails(as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Wrong(optim.SGD): ...

    def update(self: Wrong, model: Any, grads: Any) -> Any:
        optim.SGD.update(self, model, grads)
        model["b"][1] *= 1.0 + 1e-5
        return model

    monkeypatch.setattr(Wrong, "update", update)
    monkeypatch.setattr(doctor, "_OPTIMIZERS", {"Wrong": lambda: Wrong(0.1), "SGD": lambda: optim.SGD(0.1)})
    monkeypatch.setattr(doctor, "_COMPILED", ())
    assert doctor.main(as_json=as_json) == 1
    text = capsys.readouterr().out
    if as_json:
        assert json.loads(text)["failed"] == ["Wrong in host memory"]
    else:
        assert "FAILED: AssertionError: b of float64 differs from the rule by" in text and "SGD in host memory" in text


def test_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    class TwoCards:
        def name(self, device: int) -> str:
            if device > 1:
                raise driver.DeviceError("invalid device")
            return f"card, compute capability {device}.0"

        def check(self, device: int) -> None:
            if device == 1:
                raise compiler.CompilerUnavailableError("NVRTC does not support it")

    monkeypatch.setattr(driver, "driver", TwoCards)
    found = {each.subject: each for each in doctor._of_driver()}
    assert found["card 0"].found == "card, compute capability 0.0" and not found["card 0"].advice
    assert found["card 1"].advice == "NVRTC does not support it"
    assert not found["CUDA driver"].advice


def test_versions_of_libraries_import_nothing() -> None:
    code = "import sys; from oxigrad import doctor; print([doctor.version(x) for x in doctor.LIBRARIES], *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert np.__version__ in done.stdout
    assert not {"torch", "jax", "cupy", "mlx", "dask"} & set(done.stdout.split())


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-bindings is missing")
def test_kernels_that_spill_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = compiler.Resources(255, 8, 8, 8, 0)
    monkeypatch.setattr(compiler.Binary, "resources", property(lambda self: {"update_0": needs}))
    monkeypatch.setattr(compiler, "compile_text", lambda *args: compiler.Binary(b"", "sm_90", ""))
    with pytest.raises(AssertionError, match="update_0 spills 8 bytes of registers"):
        doctor.check_compiled(lambda: optim.SGD(0.1), "sm_90")


def test_a_device_without_kernels_fails() -> None:
    with pytest.raises(AssertionError, match="no kernel was launched: it is not in memory of a CUDA device"):
        doctor.check_device(lambda: optim.SGD(0.1), np.array)


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["cure"])
    assert stopped.value.code == 2 and "invalid choice" in capsys.readouterr().err
