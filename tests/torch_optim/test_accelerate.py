"""oxigrad.torch in Accelerate, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")
ours = pytest.importorskip("oxigrad.torch")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


def forget() -> None:
    """Resets the global state of Accelerate, which keeps the options of the first `Accelerator`."""
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    forget()
    yield
    forget()


class Training:
    """A regression prepared by Accelerate."""

    def __init__(self, made: Any, folder: Path | None = None, **options: Any) -> None:
        torch.manual_seed(0)
        self.accelerator = accelerate.Accelerator(cpu=True, project_dir=folder, **options)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        opt = made(model.parameters(), lr=0.05)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
        x = torch.randn(24, 4)
        loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
        self.model, self.opt, self.loader, self.scheduler = self.accelerator.prepare(model, opt, loader, scheduler)

    def epoch(self) -> list[float]:
        losses = []
        for x, y in self.loader:
            with self.accelerator.accumulate(self.model):
                loss = torch.nn.functional.mse_loss(self.model(x), y)
                self.accelerator.backward(loss)
                if self.accelerator.sync_gradients:
                    self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.scheduler.step()
                self.opt.zero_grad()
            losses.append(loss.item())
        return losses

    def parameters(self) -> list[torch.Tensor]:
        return [p.detach().clone() for p in self.model.parameters()]


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 3}, {"mixed_precision": "bf16"}], ids=str)
def test_training(options: dict[str, Any]) -> None:
    """The same numbers as with torch's optimizer."""
    ends = []
    for made in (ours.AdamW, torch.optim.AdamW):
        training = Training(made, **options)
        assert isinstance(training.opt, torch.optim.Optimizer)
        losses = training.epoch() + training.epoch()
        assert losses[-1] < losses[0] and not training.opt.step_was_skipped
        ends.append(training.parameters())
        forget()
    for p, q in zip(*ends, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"state_dtype": "8bit"}, {"state_dtype": "4bit"}], ids=str)
def test_a_saved_state_resumes(tmp_path: Path, options: dict[str, Any]) -> None:
    def made(params: Any, **named: Any) -> Any:
        return ours.AdamW(params, **named, **options)

    training = Training(made)
    training.epoch()
    training.accelerator.save_state(str(tmp_path / "saved"))
    training.epoch()
    end = training.parameters()
    forget()
    resumed = Training(made)
    resumed.accelerator.load_state(str(tmp_path / "saved"))
    resumed.epoch()
    for p, q in zip(end, resumed.parameters(), strict=True):
        assert torch.equal(p, q)


def test_schedule_free_modes() -> None:
    training = Training(ours.ScheduleFreeAdamW)
    training.opt.train()
    training.epoch()
    trained = training.parameters()
    training.opt.eval()
    averaged = training.parameters()
    assert not all(map(torch.equal, trained, averaged))
    training.opt.train()
    assert all(map(torch.equal, trained, training.parameters()))
    training.epoch()
