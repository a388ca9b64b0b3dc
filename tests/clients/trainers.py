"""One target in the training loops of other libraries: each trains it with an optimizer of oxigrad, saves, and resumes.

    python trainers.py LIBRARY

A row of `TRAINERS` trains from one step to another, from what it saved in a folder unless it begins at 0, and returns the
parameters as one vector. The result is printed as JSON: losses before and after `STEPS` steps, and the largest difference between the
parameters after these and after the same steps with a save and a resume between them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STEPS, RATE = 6, 0.02
RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 4)).astype(np.float32)
Y = np.sin(X.sum(1, keepdims=True)).astype(np.float32)

Loss = Callable[[], float]
Trainer = Callable[[Path, int, int], "tuple[np.ndarray, Loss]"]


# --- PyTorch -------------------------------------------------------------------------------------------------------------


def torch_model() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def torch_loss(model: Any, x: Any = X, y: Any = Y) -> Any:
    import torch

    return torch.nn.functional.mse_loss(model(torch.as_tensor(x)), torch.as_tensor(y))


def torch_optimizer(model: Any) -> Any:
    import oxigrad.torch

    return oxigrad.torch.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)


def of_torch(model: Any, loss: Callable[[Any], Any] = torch_loss) -> tuple[np.ndarray, Loss]:
    parameters = [p.detach().cpu().double().ravel().numpy() for p in model.parameters() if p.requires_grad]
    return np.concatenate(parameters), lambda: float(loss(model).detach())


def transformers_with_peft(folder: Path, start: int, stop: int) -> Any:
    import peft
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 8, "vocab_size": 16}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    lora = peft.LoraConfig(
        r=2, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True, init_lora_weights="gaussian"
    )
    model = peft.get_peft_model(transformers.GPT2LMHeadModel(config), lora)
    tokens = torch.arange(8) % 4
    data = [{"input_ids": tokens, "labels": tokens}] * 8
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=stop, save_steps=stop, per_device_train_batch_size=4, report_to=[], use_cpu=True,
        logging_strategy="no", disable_tqdm=True, lr_scheduler_type="constant",
    )  # fmt: skip
    trainer = transformers.Trainer(model, arguments, train_dataset=data, optimizers=(torch_optimizer(model), None))
    if stop > 0:
        trainer.train(resume_from_checkpoint=str(folder / f"checkpoint-{start}") if start else None)
    return of_torch(model, lambda model: model(input_ids=tokens[None], labels=tokens[None]).loss)


def lightning(folder: Path, start: int, stop: int) -> Any:
    import lightning
    import torch

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = torch_model()

        def training_step(self, batch: Any, _: int) -> Any:
            return torch_loss(self.model, *batch)

        def configure_optimizers(self) -> Any:
            return torch_optimizer(self)

    module = Module()
    data = torch.utils.data.DataLoader([(X, Y)], batch_size=None)
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    trainer = lightning.Trainer(max_epochs=stop, accelerator="cpu", **quiet)
    trainer.fit(module, data, ckpt_path=str(folder / "a.ckpt") if start else None)
    trainer.save_checkpoint(folder / "a.ckpt")
    return of_torch(module, lambda module: torch_loss(module.model))


def accelerate(folder: Path, start: int, stop: int) -> Any:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = torch_model()
    model, optimizer = accelerator.prepare(model, torch_optimizer(model))
    if start:
        accelerator.load_state(str(folder))
    for _ in range(start, stop):
        accelerator.backward(torch_loss(model))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.save_state(str(folder))
    return of_torch(model)


def skorch(folder: Path, start: int, stop: int) -> Any:
    import skorch

    import oxigrad.torch

    net = skorch.NeuralNetRegressor(
        torch_model, optimizer=oxigrad.torch.AdamW, lr=RATE, max_epochs=stop - start, batch_size=-1, train_split=None, verbose=0,
    ).initialize()  # fmt: skip
    files = {f"f_{part}": folder / part for part in ("params", "optimizer")}
    if start:
        net.load_params(**files)
    net.partial_fit(X, Y)
    net.save_params(**files)
    return of_torch(net.module_)


def timm(folder: Path, start: int, stop: int) -> Any:
    import torch
    from timm.models import VisionTransformer
    from timm.scheduler import CosineLRScheduler

    torch.manual_seed(0)
    model = VisionTransformer(img_size=4, patch_size=2, in_chans=1, num_classes=1, embed_dim=8, depth=1, num_heads=2)
    images = np.resize(X, (16, 1, 4, 4))
    optimizer = torch_optimizer(model)
    schedule = CosineLRScheduler(optimizer, t_initial=20, warmup_t=2, warmup_lr_init=RATE / 10)
    if start:
        saved = torch.load(folder / "a.pt", weights_only=True)
        for each, state in zip((model, optimizer, schedule), saved, strict=True):
            each.load_state_dict(state)
    for step in range(start, stop):
        schedule.step(step)
        optimizer.zero_grad()
        torch_loss(model, images).backward()
        optimizer.step()
    torch.save([each.state_dict() for each in (model, optimizer, schedule)], folder / "a.pt")
    return of_torch(model, lambda model: torch_loss(model, images))


# --- JAX -----------------------------------------------------------------------------------------------------------------


def transformation() -> Any:
    import oxigrad.optax

    return oxigrad.optax.adamw(RATE)


def of_jax(parameters: Any, loss: Callable[[], Any]) -> tuple[np.ndarray, Loss]:
    import jax

    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(parameters)]), lambda: float(loss())


def flax_nnx(folder: Path, start: int, stop: int) -> Any:
    import jax.numpy as jnp
    from flax import nnx, serialization

    model = nnx.Sequential(nnx.Linear(4, 8, rngs=nnx.Rngs(0)), jnp.tanh, nnx.Linear(8, 1, rngs=nnx.Rngs(1)))
    optimizer = nnx.Optimizer(model, transformation(), wrt=nnx.Param)
    file = folder / "a.msgpack"
    if start:
        for each, data in zip(
            (model, optimizer), serialization.msgpack_restore(file.read_bytes()).values(), strict=True
        ):
            nnx.update(each, nnx.restore_int_paths(data))

    def loss(model: Any) -> Any:
        return jnp.mean((model(X) - Y) ** 2)

    @nnx.jit
    def step(model: Any, optimizer: Any) -> None:
        optimizer.update(model, nnx.grad(loss)(model))

    for _ in range(start, stop):
        step(model, optimizer)
    states = {name: nnx.to_pure_dict(nnx.state(each)) for name, each in (("model", model), ("optimizer", optimizer))}
    file.write_bytes(serialization.msgpack_serialize(serialization.to_state_dict(states)))
    return of_jax(nnx.to_pure_dict(nnx.state(model, nnx.Param)), lambda: loss(model))


def equinox(folder: Path, start: int, stop: int) -> Any:
    import equinox
    import jax
    import jax.numpy as jnp

    model = equinox.nn.MLP(4, 1, 8, 1, jnp.tanh, key=jax.random.key(0))
    optimizer = transformation()
    state = optimizer.init(equinox.filter(model, equinox.is_array))
    if start:
        model, state = equinox.tree_deserialise_leaves(folder / "a.eqx", (model, state))

    def loss(model: Any) -> Any:
        return jnp.mean((jax.vmap(model)(X) - Y) ** 2)

    @equinox.filter_jit
    def step(model: Any, state: Any) -> Any:
        updates, state = optimizer.update(
            equinox.filter_grad(loss)(model), state, equinox.filter(model, equinox.is_array)
        )
        return equinox.apply_updates(model, updates), state

    for _ in range(start, stop):
        model, state = step(model, state)
    equinox.tree_serialise_leaves(folder / "a.eqx", (model, state))
    return of_jax(equinox.filter(model, equinox.is_array), lambda: loss(model))


def numpyro(folder: Path, start: int, stop: int) -> Any:
    import jax
    import numpyro
    from flax import serialization
    from numpyro import distributions
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoDelta

    def model() -> None:
        w = numpyro.sample("w", distributions.Normal(0, 1).expand([4, 1]).to_event(2))
        numpyro.sample("y", distributions.Normal(X @ w, 0.5).to_event(2), obs=Y)

    svi = SVI(model, AutoDelta(model), numpyro.optim.optax_to_numpyro(transformation()), Trace_ELBO())
    state = svi.init(jax.random.key(0))
    leaves, structure = jax.tree.flatten(state.optim_state)
    file = folder / "a.msgpack"
    if start:
        leaves = serialization.msgpack_restore(file.read_bytes())["leaves"]
        state = state._replace(optim_state=jax.tree.unflatten(structure, leaves.values()))
    for _ in range(start, stop):
        state, _ = svi.update(state)
    leaves = {str(at): np.asarray(leaf) for at, leaf in enumerate(jax.tree.leaves(state.optim_state))}
    file.write_bytes(serialization.msgpack_serialize({"leaves": leaves}))
    return of_jax(svi.get_params(state), lambda: svi.evaluate(state))


def optimistix(folder: Path, start: int, stop: int) -> Any:
    import equinox
    import jax.numpy as jnp
    import optimistix

    def loss(w: Any, _: Any = None) -> Any:
        return jnp.mean((jnp.tanh(X @ w) - Y) ** 2)

    solver = optimistix.OptaxMinimiser(transformation(), rtol=1e-8, atol=1e-8)
    w = jnp.full((4, 1), 0.1)
    call = (lambda w, args: (loss(w), None)), w, None, {}
    state = solver.init(*call, *map(equinox.filter_eval_shape, (lambda: jnp.zeros(()), lambda: None)), frozenset())
    if start:
        w, state = equinox.tree_deserialise_leaves(folder / "a.eqx", (w, state))
    for _ in range(start, stop):
        w, state, _ = solver.step(call[0], w, None, {}, state, frozenset())
    equinox.tree_serialise_leaves(folder / "a.eqx", (w, state))
    return of_jax(w, lambda: loss(w))


# --- Keras ---------------------------------------------------------------------------------------------------------------


def keras(folder: Path, start: int, stop: int) -> Any:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    import oxigrad.keras

    keras.utils.set_random_seed(0)
    file = str(folder / "a.keras")
    if start:
        model = keras.saving.load_model(file)
    else:
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
        model.compile(optimizer=oxigrad.keras.AdamW(RATE), loss="mse")
    model.fit(X, Y, batch_size=16, epochs=stop - start, verbose=0)
    model.save(file)
    parameters = np.concatenate([np.ravel(keras.ops.convert_to_numpy(each)) for each in model.trainable_variables])
    return parameters, lambda: float(model.evaluate(X, Y, verbose=0))


TRAINERS: dict[str, Trainer] = {
    "transformers": transformers_with_peft,
    "lightning": lightning,
    "accelerate": accelerate,
    "skorch": skorch,
    "timm": timm,
    "flax": flax_nnx,
    "equinox": equinox,
    "numpyro": numpyro,
    "optimistix": optimistix,
    "keras": keras,
}


def compared(train: Trainer) -> dict[str, float]:
    """Losses after one step and after all, and the difference that a save and a resume make."""
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as whole,
        tempfile.TemporaryDirectory() as half,
    ):
        before = train(Path(first), 0, 1)[1]()
        parameters, loss = train(Path(whole), 0, STEPS)
        train(Path(half), 0, STEPS // 2)
        resumed, _ = train(Path(half), STEPS // 2, STEPS)
    return {"before": before, "after": loss(), "difference": float(np.max(np.abs(parameters - resumed)))}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(compared(TRAINERS[sys.argv[1]])) + "\n")
