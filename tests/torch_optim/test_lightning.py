"""oxigrad.torch in the trainer of Lightning, on the CPU."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")
ours = pytest.importorskip("oxigrad.torch")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The '.*dataloader' does not have many workers"),
]


class Regression(lightning.LightningModule):
    """A regression with an optimizer and a scheduler."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.made = made
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        self.losses: list[float] = []

    def training_step(self, batch: Any) -> Any:
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layers(x), y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> Any:
        opt = self.made(self.parameters(), lr=0.05)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=20)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def data() -> Any:
    x = torch.randn(24, 4, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)


def fit(model: Any, folder: Path, epochs: int, resume: str | None = None, **options: Any) -> Any:
    # Stated, or Lightning would ask mpi4py, where that is installed, whether MPI started this process.
    environment = importlib.import_module("lightning.fabric.plugins.environments").LightningEnvironment()
    trainer = lightning.Trainer(
        plugins=[environment],
        accelerator="cpu",
        devices=1,
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **options,
    )
    trainer.fit(model, data(), ckpt_path=resume)
    return trainer


@pytest.mark.parametrize("options", [{}, {"accumulate_grad_batches": 2, "gradient_clip_val": 0.5}], ids=str)
def test_training(tmp_path: Path, options: dict[str, Any]) -> None:
    """The same values as with torch; the training step is the closure of ``step``."""
    models = []
    for made in (ours.AdamW, torch.optim.AdamW):
        model = Regression(made)
        fit(model, tmp_path, 2, **options)
        models.append(model)
    assert models[0].losses == pytest.approx(models[1].losses, rel=1e-4)
    assert models[0].losses[-1] < models[0].losses[0]
    for p, q in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_a_checkpoint_resumes(tmp_path: Path) -> None:
    whole = Regression(ours.AdamW)
    fit(whole, tmp_path, 3)
    model = Regression(ours.AdamW)
    fit(model, tmp_path, 2).save_checkpoint(tmp_path / "saved.ckpt")
    resumed = Regression(ours.AdamW)
    fit(resumed, tmp_path, 3, str(tmp_path / "saved.ckpt"))
    assert resumed.losses == whole.losses[len(model.losses) :]
    for p, q in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(p, q)


def test_manual_optimization(tmp_path: Path) -> None:
    class Manual(Regression):
        def __init__(self, made: Any) -> None:
            super().__init__(made)
            self.automatic_optimization = False

        def training_step(self, batch: Any) -> None:
            opt = self.optimizers()
            assert isinstance(opt, torch.optim.Optimizer)
            opt.zero_grad()
            self.manual_backward(super().training_step(batch))
            opt.step()

    model = Manual(ours.AdamW)
    fit(model, tmp_path, 2)
    assert model.losses[-1] < model.losses[0]
