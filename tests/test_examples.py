"""The examples run unchanged, and reduce the loss."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxigrad import optim, schedules
from oxigrad.optim import Quantized

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.one_in(6)
def test_xor_is_learned_from_every_seed(seed: int) -> None:
    example = runpy.run_path(str(EXAMPLES / "xor.py"))
    model = example["main"](seed)
    np.testing.assert_array_equal(np.round(model(example["INPUTS"])), example["TARGETS"])


def test_xor_prints_the_truth_table() -> None:
    lines = run("xor.py").splitlines()
    assert lines[-4:] == ["0 xor 0 = 0.000", "0 xor 1 = 1.000", "1 xor 0 = 1.000", "1 xor 1 = 0.000"]


@pytest.mark.slow
def test_digits_reaches_its_goal(tmp_path: Path) -> None:
    printed = run("digits.py", directory=tmp_path)
    assert (tmp_path / "output" / "digits.png").stat().st_size > 10_000
    assert "picture: output/digits.png" in printed
    accuracy = float(printed.rpartition("test accuracy ")[2].split(",")[0])
    assert accuracy >= 0.975


def test_digits_reports_its_timing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLES / "digits.py"))
    assert example["main"](epochs=1, output=tmp_path) < example["GOAL"]
    printed = capsys.readouterr().out
    assert all(part in printed for part in ("batch", "forward and backward", "update", "us a step"))


@pytest.mark.slow
def test_the_transformer_learns_to_count(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLES / "transformer.py"))
    wrong = example["main"](steps=300)
    assert len(wrong) < 30
    printed = capsys.readouterr().out
    assert "step 300  loss 0." in printed
    assert f"goes on right after {100 - len(wrong)} of 100 numbers" in printed


@pytest.mark.slow
def test_moments_of_eight_bits_train_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """As examples/eight_bits.py has it, with fewer steps and smaller batches."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import eight_bits
    import transformer

    monkeypatch.setattr(transformer, "BATCH", 8)
    begun = {eight_bits.end_of_digits: np.log(10), eight_bits.end_of_transformer: np.log(len(transformer.LETTERS))}
    for end, length in ((eight_bits.end_of_digits, 30), (eight_bits.end_of_transformer, 60)):
        used = []

        def shortened(seed: int, end: Any = end, length: int = length, used: list[Any] = used, **options: Any) -> Any:
            loss, optimizer = end(seed, length, **options)
            used.append((options["slot_dtype"], optimizer))
            return loss, optimizer

        losses = eight_bits.compared(shortened)
        assert abs(eight_bits.standard_errors(losses)) < 3, losses
        # The loss has come down far enough for the moments to matter, by nearly as much either way.
        means = [np.mean(found) for found in losses.values()]
        assert max(means) < 0.6 * begun[end], means
        np.testing.assert_allclose(means[1], means[0], rtol=0.1)
        for dtype, optimizer in used:
            large = [slots for slots in optimizer.slots.values() if np.prod(slots["m"].shape) >= 4096]
            assert len(large) >= 2
            kept = {type(slot) for slots in large for slot in slots.values()}
            assert kept == ({Quantized} if dtype == "8bit" else {np.ndarray})


def test_digits_are_learned_under_jit(library: Any) -> None:
    library("jax"), library("optax")
    printed = run("jax_digits.py")
    assert "1760 steps, test accuracy" in printed
    accuracy = float(printed.rpartition("test accuracy ")[2].split(",")[0])
    assert accuracy >= 0.97


@pytest.mark.slow
def test_schedules_are_all_drawn(tmp_path: Path) -> None:
    assert run("schedules.py", directory=tmp_path) == "picture: output/schedules.png\n"
    assert (tmp_path / "output" / "schedules.png").stat().st_size > 50_000
    example = runpy.run_path(str(EXAMPLES / "schedules.py"))
    drawn = {name for title in example["PANELS"] for name in title.split(", ")}
    assert drawn | {"plateau", "follow", "Schedule", "from_config"} == set(schedules.__all__)
    values = example["observed"]()
    assert values[0] == 1.0 and values == sorted(values, reverse=True) and values[-1] < 0.1


@pytest.mark.slow
def test_the_gallery_shows_every_optimizer_on_its_way_down(tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLES / "gallery.py"))
    drawn: dict[str, list[np.ndarray]] = {}
    draw = example["draw"]
    example["main"].__globals__["draw"] = lambda paths, file: (drawn.update(paths), draw(paths, file))
    ends = example["main"](tmp_path)
    for name, found in drawn.items():
        for valley, points in zip(example["VALLEYS"], found, strict=True):
            assert len(points) == 401 and all(map(valley.shows, points)), name
    assert (tmp_path / "gallery.png").stat().st_size > 100_000
    begins = [float(valley.function(np.array(valley.start))) for valley in example["VALLEYS"]]
    for name, found in ends.items():
        assert all(end < 0.5 * begin for end, begin in zip(found, begins, strict=True)), (name, found, begins)
    for valley, name in ((0, "AdamW"), (1, "SGD")):  # the search of two of them, near the rate that it has found
        rate = example["RATES"][name][valley]
        example["CANDIDATES"][:] = [0.1 * rate, rate, 5 * rate]
        assert example["search"](name, example["VALLEYS"][valley]) == rate
    shipped = {
        name for name, made in vars(optim).items() if isinstance(made, type) and getattr(made, "_declared", None)
    }
    shipped = {name for name in shipped if issubclass(getattr(optim, name), optim.RuleOptimizer)}
    assert ends.keys() == shipped - {"GaLore", "Muon"}  # which are for matrices


@pytest.mark.parametrize(
    "precision",
    [
        "bfloat16, float32 master and moments",
        pytest.param("float32", marks=pytest.mark.slow),
        pytest.param("bfloat16, moments of 8 bits", marks=pytest.mark.slow),
    ],
)
def test_every_place_of_the_optimizer_trains_alike(
    precision: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As examples/offload.py has it, with fewer steps."""
    pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    monkeypatch.syspath_prepend(EXAMPLES)
    import offload
    import transformer

    monkeypatch.setattr(offload, "PRECISIONS", {precision: offload.PRECISIONS[precision]})
    monkeypatch.setattr(transformer, "WIDTH", transformer.WIDTH)  # which the example changes
    assert offload.main(steps=3)
    printed = capsys.readouterr().out
    assert printed.count("equal to the bit") == 2 * len(offload.MODES) + 1


def test_muon_in_host_memory_trains_as_on_the_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    """As examples/muon_offload.py has it, with fewer steps."""
    pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    monkeypatch.syspath_prepend(EXAMPLES)
    import muon_offload

    assert muon_offload.main(steps=3)


def test_a_model_of_torch_reads_digits(capsys: pytest.CaptureFixture[str]) -> None:
    """As examples/torch_mnist.py has it, and with torch's own optimizer in the place of ours for some steps."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    try:
        example = runpy.run_path(str(EXAMPLES / "torch_mnist.py"))
        assert example["main"]() >= example["GOAL"]
        assert "test accuracy 0.9" in capsys.readouterr().out
        assert abs(example["main"](2) - example["main"](2, torch.optim.AdamW)) < 0.01
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
def test_workers_learn_digits_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLES / "distributed.py"))
    picture = tmp_path / "output" / "distributed.png"
    some = ["--method", "sync_replicas,model_average,kfac,large_batch", "--epochs", "10", "--picture", str(picture)]
    assert example["main"](some) in (0, 1)
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.startswith("threads  ")]
    assert [row[1] for row in rows] == ["sync_replicas", "model_average", "kfac", "large_batch"]
    assert min(float(row[2]) for row in rows) > 0.85
    assert printed.count("gradients accepted") == 16 and picture.stat().st_size > 10_000


def test_distributed_refuses_unknown_names() -> None:
    example = runpy.run_path(str(EXAMPLES / "distributed.py"))
    for arguments, message in (
        (["--method", "none"], "--method is 'none': expected all, or some of data_parallel, sync_replicas"),
        (["--engine", "tcp"], "--engine is 'tcp': expected all, or some of threads, mpi, ray, torch"),
    ):
        with pytest.raises(SystemExit, match=message):
            example["main"](arguments)


@pytest.mark.parametrize("engine", ["mpi", "torch"])
def test_workers_of_the_example_are_processes(engine: str, tmp_path: Path) -> None:
    pytest.importorskip({"mpi": "mpi4py", "torch": "torch"}[engine])
    arguments = ["--engine", engine, "--method", "model_average,large_batch", "--epochs", "2", "--workers", "2"]
    line = [sys.executable, str(EXAMPLES / "distributed.py"), *arguments]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr  # two epochs are too few for the goal
    rows = [row for row in done.stdout.splitlines() if row.startswith(f"{engine} ")]
    assert len(rows) == 2 and all("below 0.97" in row for row in rows)


@pytest.mark.slow
def test_the_short_examples_reach_their_goals() -> None:
    def main(name: str) -> Any:
        return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()

    assert main("gaussian_process") < 0.1
    likelihood, best = main("hidden_markov")
    assert best - 0.02 < likelihood < best + 0.02
    np.testing.assert_allclose(main("ode_fit"), [1.0, 0.5, 0.8, 0.3], rtol=0.05)
    means, evidence = main("variational_inference")
    np.testing.assert_allclose(means, [1.5, -2.0, 0.0], atol=0.4)
    assert -140.0 < evidence < -130.0
    assert main("recurrent_net") > 0.99
    natural, plain, found = main("natural_gradient")
    assert 10 * natural < plain
    np.testing.assert_allclose(found, [8.0, 0.2], rtol=0.05)
    before, after = main("fluid")
    assert after < 0.5 * before
    assert main("recorded_training") > 0.95
    before, after = main("sparse_least_squares")
    assert after < 1e-3 < 0.1 * before


@pytest.mark.slow
def test_hyperparameters_learned_by_their_gradients_generalize_better() -> None:
    hyperparameters, before, after = runpy.run_path(str(EXAMPLES / "hypergradient.py"))["main"](rounds=12)
    assert after < 0.8 * before
    assert hyperparameters.rates.shape == (30,) and np.ptp(hyperparameters.rates) > 0.1
    assert np.ptp(hyperparameters.decays) > 0.1


def run(name: str, directory: Path | None = None) -> str:
    """Output of an example, which must exit with status 0."""
    command = [sys.executable, "-W", "error", EXAMPLES / name]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True, timeout=300).stdout
