"""Requirements of the PyTorch ecosystem on an optimizer: 22 properties, each a function of the library under test.

A function raises an error if the property does not hold, and `NotOffered` if the library lacks the feature. The first line of its
docstring, with the number, is the row of the table in docs/torch.md.
"""

from __future__ import annotations

import copy
import functools
import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.distributed.checkpoint import state_dict as distributed_state
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

import torch_problems
from torch_problems import (
    Library,
    NotOffered,
    copies,
    equal,
    gradients,
    parameters,
    reads_loss,
    shapes_for,
    states,
    tensors,
    train,
    values,
)

LARGE = ((64, 64), (3,))  # the first has as many numbers as a state of 8 bits asks for
HALF = torch.bfloat16


@contextmanager
def process_group() -> Iterator[None]:
    """A process group of size one; by NCCL for tensors on a GPU, where the default device is one."""
    if torch.distributed.is_initialized():
        yield
        return
    backend = "gloo" if torch.get_default_device().type == "cpu" else "cpu:gloo,cuda:nccl"
    torch.distributed.init_process_group(backend, store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


@contextmanager
def device_mesh() -> Iterator[Any]:
    """A mesh of one process, on the default device."""
    with process_group():
        yield torch.distributed.device_mesh.init_device_mesh(torch.get_default_device().type, (1,))


def expect(error: type[BaseException], call: Callable[[], Any], message: str = "") -> None:
    """Fails unless the call raises an error of this class with a message that has this text."""
    found = None
    try:
        call()
    except error as raised:
        found = str(raised)
    assert found is not None, f"expected {error.__name__}"
    assert message in found, f"the message is {found}"


def low_precision(library: Library) -> list[tuple[Callable[..., Any], torch.dtype]]:
    """Factories of AdamW with each precision of the state that the library offers, and the dtype of the parameters."""
    found: list[tuple[Callable[..., Any], torch.dtype]] = [(functools.partial(library.make, "AdamW"), torch.float32)]
    for option, dtype in (
        ("8-bit state", torch.float32),
        ("master weights", HALF),
        ("compensated", HALF),
        ("stochastic rounding", HALF),
    ):
        if option in library.options:
            found.append((library.with_option(option), dtype))
    return found


def made(library: Library, name: str, **options: Any) -> tuple[Any, list[torch.nn.Parameter]]:
    """An optimizer and its parameters."""
    params = parameters(shapes_for(name))
    return library.make(name, params, **options), params


# --- 1 to 4: construction ------------------------------------------------------------------------------------------------


def is_an_optimizer(library: Library) -> None:
    """1. Every class is a subclass of ``torch.optim.Optimizer``, and learning rate schedulers accept it."""
    for name in library.names:
        opt, _ = made(library, name)
        assert isinstance(opt, torch.optim.Optimizer), name
        assert type(opt).__name__ == name
        torch.optim.lr_scheduler.StepLR(opt, 1)


def copies_continue(library: Library) -> None:
    """2. Pickled and deep copies continue training bit for bit: ``state``, ``param_groups`` and ``defaults`` hold everything."""
    for make, dtype in low_precision(library):
        params = parameters(LARGE, dtype)
        opt = make(params)
        train(opt, params)
        pairs = [pickle.loads(pickle.dumps((params, opt))), copy.deepcopy((params, opt))]  # noqa: S301
        train(opt, params, range(3, 6))
        for others, other in pairs:
            train(other, others, range(3, 6))
            assert equal(others, params)
            assert equal(states(other), states(opt))


def parameters_may_be_replaced(library: Library) -> None:
    """3. ``param_group["params"]`` and the storage of a parameter may be replaced between steps, as FSDP2 does."""
    before = parameters()
    opt, kept, after = library.make("AdamW", before), values(before), copies(before)
    for group in opt.param_groups:
        group["params"] = [after[i] for i, _ in enumerate(group["params"])]
    reference = copies(kept)
    other = library.make("AdamW", reference)
    for step in range(6):
        train(opt, after, [step])
        train(other, reference, [step])
        assert equal(after, reference), step
        if step == 2:
            old = values(after)
            memory = [p.data for p in after]
            for p in after:
                p.data = p.data.clone()
        if step > 2:
            assert equal(memory, old), "the previous storage of a parameter is not written"
    assert equal(before, kept), "a parameter that was replaced is not written"


def state_is_lazy(library: Library) -> None:
    """4. State is created lazily, by the first step; before it, ``load_state_dict(state_dict())`` works, as Accelerate calls it."""
    for name in library.names:
        (opt, params), (other, others) = made(library, name), made(library, name)
        assert not states(opt), name
        opt.load_state_dict(opt.state_dict())
        train(opt, params)
        train(other, others)
        assert equal(params, others), name


# --- 5 to 9: state ---------------------------------------------------------------------------------------------------------


def loading_preserves_dtypes(library: Library) -> None:
    """5. ``load_state_dict`` preserves the dtypes of the state, whatever the dtype of the parameter."""
    kinds = [("float32 state", HALF)] + [("8-bit state", torch.float32)] * ("8-bit state" in library.options)
    for option, dtype in kinds:
        params = parameters(LARGE, dtype)
        opt = library.with_option(option)(params)
        train(opt, params)
        saved = copy.deepcopy(opt.state_dict())
        if dtype is HALF:  # torch creates no such state; checkpoints of other optimizers have it
            for own in saved["state"].values():
                own.update({k: v.float() for k, v in own.items() if isinstance(v, torch.Tensor) and v.dtype is HALF})
            assert {t.dtype for t in tensors(saved["state"]) if t.ndim} == {torch.float32}
        others = copies(params)
        other = library.with_option(option)(others)
        other.load_state_dict(saved)
        assert [t.dtype for t in states(other)] == [t.dtype for t in tensors(saved["state"])]
        assert equal(states(other), tensors(saved["state"]))
        if dtype is not HALF:
            train(opt, params, range(3, 6))
            train(other, others, range(3, 6))
            assert equal(params, others)


def quantized_state_survives_fsdp(library: Library) -> None:
    """6. Quantized state survives gathering by FSDP: top-level tensors have the shape of the parameter, others are nested."""
    make = library.with_option("8-bit state")
    params = parameters(LARGE)
    opt = make(params)
    train(opt, params)
    saved = opt.state_dict()
    assert any(t.dtype == torch.uint8 for t in tensors(saved["state"]))
    for i, own in saved["state"].items():
        seen = [t for t in own.values() if isinstance(t, torch.Tensor) and t.ndim]
        assert all(t.shape == params[i].shape for t in seen), {k: t.shape for k, t in own.items() if t in seen}
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    others = copies(params)
    other = make(others)
    other.load_state_dict(torch.load(file, weights_only=True))
    train(opt, params, range(3, 6))
    train(other, others, range(3, 6))
    assert equal(params, others)


def distributed_checkpoints_initialize_state(library: Library) -> None:
    """7. The initializing step of distributed checkpoints (zero gradients, ``lr=0``) creates state and changes nothing else."""
    kinds = [(functools.partial(library.make, name), torch.float32, shapes_for(name)) for name in library.names]
    kinds += [(make, dtype, LARGE) for make, dtype in low_precision(library)]
    for make, dtype, shapes in kinds:
        params = parameters(shapes, dtype)
        opt = make(params)
        name = type(opt).__name__
        if name in ("LBFGS", "SparseAdam") or reads_loss(opt):
            continue  # LBFGS needs a closure, SparseAdam sparse gradients, and others the loss
        train(opt, params)
        saved = copy.deepcopy(distributed_state.get_optimizer_state_dict(Listed(params), opt))
        others = copies(params)
        other = make(others)
        distributed_state.get_optimizer_state_dict(Listed(others), other)
        if name in ("MADGRAD", "ScheduleFreeSGD"):  # The mean of a parameter and itself is rounded.
            torch.testing.assert_close(values(others), values(params), rtol=1e-6, atol=1e-6)
            for p, q in zip(others, params, strict=True):
                p.data.copy_(q.data)
        assert equal(others, params), name
        assert [t.shape for t in states(other)] == [t.shape for t in states(opt)], name
        assert other.param_groups[0]["lr"] == opt.param_groups[0]["lr"]
        fresh = copies(params)
        untrained = make(fresh)
        distributed_state.get_optimizer_state_dict(Listed(fresh), untrained)
        train(untrained, fresh)
        assert not equal(fresh, params), f"{name} does not train without a state that is loaded"
        distributed_state.set_optimizer_state_dict(Listed(others), other, saved)
        train(opt, params, range(3, 6))
        train(other, others, range(3, 6))
        assert equal(others, params), name


class Listed(torch.nn.Module):
    """A module with the given parameters."""

    def __init__(self, params: Any) -> None:
        super().__init__()
        self.all = torch.nn.ParameterList(params)


def low_order_parts_are_in_checkpoints(library: Library) -> None:
    """8. Checkpoints contain master weights and the compensation of Kahan summation."""
    for option in ("master weights", "compensated"):
        make = library.with_option(option)
        params = parameters(LARGE, HALF)
        opt = make(params, lr=1e-4)
        train(opt, params)
        saved = copy.deepcopy(opt.state_dict())
        others = copies(params)
        other = make(others, lr=1e-4)
        other.load_state_dict(saved)
        train(opt, params, range(3, 20))
        train(other, others, range(3, 20))
        assert equal(others, params) and equal(states(other), states(opt))
        plain = parameters(LARGE, HALF)
        train(library.make("AdamW", plain, lr=1e-4), plain, range(20))
        assert not equal(plain, params), "the option has no effect in this test"


def loading_copies(library: Library) -> None:
    """9. ``load_state_dict`` copies: two optimizers never share memory."""
    for make, dtype in low_precision(library):
        params = parameters(LARGE, dtype)
        opt = make(params)
        train(opt, params)
        saved = opt.state_dict()
        before = values(states(opt))
        others = copies(params)
        other = make(others)
        other.load_state_dict(saved)
        train(other, others, range(3, 6))
        assert equal(states(opt), before), "the source changed"
        after = values(states(other))
        train(opt, params, range(6, 9))
        assert equal(states(other), after), "the copy changed"


# --- 10 to 14: step --------------------------------------------------------------------------------------------------------


def closures_are_called(library: Library) -> None:
    """10. ``step(closure)`` calls the closure once, with gradients enabled, before the update, and returns its value."""
    params = parameters()
    opt, reference = library.make("AdamW", params), copies(params)
    calls = []

    def closure() -> torch.Tensor:
        assert torch.is_grad_enabled()
        opt.zero_grad()
        loss = sum(((p * p).sum() for p in params), torch.tensor(0.0))
        loss.backward()
        calls.append(loss)
        return loss

    with torch.no_grad():
        assert opt.step(closure) is calls[0]
    assert opt.step(closure=closure) is calls[1] and len(calls) == 2
    other = library.make("AdamW", reference)
    for _ in range(2):
        for p in reference:
            p.grad = 2 * p.detach()
        assert other.step() is None
    assert equal(params, reference)


def schedulers_wrap_step(library: Library) -> None:
    """11. ``step`` is a plain bound method, which schedulers wrap on the instance to check the order of calls."""
    opt, params = made(library, "AdamW")
    assert opt.step.__func__ is not None and opt.step.__self__ is opt
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)
    assert opt.step._wrapped_by_lr_sched
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(opt, params, [0])
        scheduler.step()
    assert opt._opt_called
    assert opt.param_groups[0]["lr"] == opt.param_groups[0]["initial_lr"] / 2
    opt, _ = made(library, "AdamW")
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expect(UserWarning, scheduler.step, "before `optimizer.step()`")


def hyperparameters_are_read_each_step(library: Library) -> None:
    """12. ``lr``, ``betas``, ``momentum``, ``eps`` and ``weight_decay`` are read from ``param_groups`` at each step; ``lr`` may be a tensor."""
    plans: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
        ("AdamW", {}, [{"lr": 0.1}, {"betas": (0.5, 0.9)}, {"eps": 1e-3}, {"weight_decay": 0.5}]),
        ("SGD", {"lr": 0.1, "momentum": 0.9}, [{"lr": 0.2}, {"momentum": 0.5}, {"weight_decay": 0.1}]),
    ]
    for name, options, changes in plans:
        params, theirs = parameters(), parameters()
        opt, expected = library.make(name, params, **options), getattr(torch.optim, name)(theirs, **options)
        for step, change in enumerate([{}, *changes]):
            for one in (opt, expected):
                one.param_groups[0].update(change)
            train(opt, params, [step])
            train(expected, theirs, [step])
            for p, q in zip(params, theirs, strict=True):
                torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5, msg=f"{name}: {change}")
    params, theirs, lr = parameters(), parameters(), torch.tensor(0.1)
    opt, expected = library.make("AdamW", params, lr=lr), torch.optim.AdamW(theirs, lr=0.1)
    for step in range(3):
        train(opt, params, [step])
        train(expected, theirs, [step])
        lr.mul_(0.5)
        opt.param_groups[0]["lr"].copy_(lr)
        expected.param_groups[0]["lr"] *= 0.5
    for p, q in zip(params, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5)


def gradients_are_unscaled(library: Library) -> None:
    """13. With ``_step_supports_amp_scaling``, the step unscales gradients, and a skipped step does not count."""
    make = library.with_option("scaled gradients")
    params, reference = parameters(), parameters()
    opt, other = make(params), library.make("AdamW", reference)
    if not getattr(opt, "_step_supports_amp_scaling", False):
        raise NotOffered("_step_supports_amp_scaling")
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for step in range(5):
        infinite = step == 2
        before = values(params)
        scale = scaler.scale(torch.tensor(1.0)).item()
        for p, g in zip(params, gradients(params, step), strict=True):
            p.grad = g * scale
        if infinite:
            params[1].grad[0] = float("inf")  # type: ignore[index]
        scaler.step(opt)
        scaler.update()
        assert not {"grad_scale", "found_inf"} & vars(opt).keys()
        if infinite:
            assert equal(params, before)
        else:
            train(other, reference, [step])
        for p, q in zip(params, reference, strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
    assert scaler.get_scale() == 8.0 * 2 / 2 * 2
    assert all(float(own["step"]) == 4 for own in opt.state.values())


def skipped_steps_are_detected(library: Library) -> None:
    """14. Accelerate detects skipped steps, also with ``fused=True``: unscaling in the step is opt-in."""
    from accelerate import Accelerator
    from accelerate.optimizer import AcceleratedOptimizer

    Accelerator(cpu=True)
    for options in ({}, {"fused": True}):
        params = parameters()
        try:
            opt = library.make("AdamW", params, **options)
        except TypeError:
            continue
        wrapped = AcceleratedOptimizer(opt, scaler=torch.amp.GradScaler("cpu", init_scale=1.0))
        for infinite in (False, True, False):
            wrapped.scaler.scale(torch.tensor(1.0))
            for p, g in zip(params, gradients(params, 0), strict=True):
                p.grad = g / 0.0 if infinite else g
            wrapped.step()
            assert wrapped.step_was_skipped == infinite, options


# --- 15 to 18: interface ---------------------------------------------------------------------------------------------------


def hooks_are_called(library: Library) -> None:
    """15. All hooks run: before and after ``step`` (also global ones), ``state_dict`` and ``load_state_dict``."""
    params = parameters()
    opt, called = library.make("AdamW", params), []

    def before(_: Any, args: Any, kwargs: Any) -> Any:
        called.append("before")
        return ((args[0], lambda: "replaced"), {}) if len(args) > 1 else None  # the first is the optimizer

    handles = [
        opt.register_step_pre_hook(before),
        opt.register_step_post_hook(lambda *_: called.append("after")),
        register_optimizer_step_pre_hook(lambda *_: called.append("before all")),
        register_optimizer_step_post_hook(lambda *_: called.append("after all")),
    ]
    try:
        train(opt, params, [0])
        order = ["before", "before all", "after", "after all"]
        assert sorted(called) == sorted(order) and called.index("before") < called.index("after")
        assert opt.step(lambda: "given") == "replaced"
    finally:
        for handle in handles:
            handle.remove()
    called.clear()
    opt.register_state_dict_pre_hook(lambda _: called.append("saving"))
    opt.register_state_dict_post_hook(lambda _, saved: {**saved, "more": 1})
    saved = opt.state_dict()
    assert called == ["saving"] and saved["more"] == 1
    opt.register_load_state_dict_pre_hook(lambda _, given: called.append(f"loading {given['more']}"))
    opt.register_load_state_dict_post_hook(lambda _: called.append("loaded"))
    opt.load_state_dict(saved)
    assert called == ["saving", "loading 1", "loaded"]


FLAGS = ("foreach", "fused", "capturable", "differentiable", "maximize")


def flags_follow_the_rules(library: Library) -> None:
    """16. ``foreach``, ``fused``, ``capturable``, ``differentiable`` and ``maximize`` follow torch's rules; old checkpoints may lack them."""
    for flag in FLAGS:
        params, theirs = parameters(), parameters()
        opt, expected = (made("AdamW", p, **{flag: False}) for made, p in ((library.make, params), (_torch, theirs)))
        assert opt.param_groups[0].keys() >= set(FLAGS)
        assert opt.param_groups[0][flag] is False
        train(opt, params)
        train(expected, theirs)
        saved = copy.deepcopy(opt.state_dict())
        for group in saved["param_groups"]:
            del group[flag]
        opt.load_state_dict(saved)
        assert flag in opt.param_groups[0]
        train(opt, params, range(3, 6))
        train(expected, theirs, range(3, 6))
        for p, q in zip(params, theirs, strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
    for wrong in ({"foreach": True, "fused": True}, {"fused": True, "differentiable": True}):
        errors = []
        for make in (library.make, _torch):
            try:
                make("AdamW", parameters(), **wrong)
            except RuntimeError as error:
                errors.append(str(error))
        assert len(errors) == 2 and errors[0] == errors[1], errors


def _torch(name: str, params: Any, **options: Any) -> Any:
    return getattr(torch.optim, name)(params, **options)


def steps_may_be_numbers(library: Library) -> None:
    """17. ``step`` in a loaded state may be a Python number."""
    for number in (float, int, torch.tensor):
        params = parameters()
        opt = library.make("AdamW", params)
        train(opt, params)
        saved = copy.deepcopy(opt.state_dict())
        for own in saved["state"].values():
            own["step"] = number(float(own["step"]))
        others = copies(params)
        other = library.make("AdamW", others)
        other.load_state_dict(saved)
        train(opt, params, range(3, 6))
        train(other, others, range(3, 6))
        assert equal(others, params)
        assert [float(own["step"]) for own in other.state.values()] == [6.0] * len(params)


def groups_of_parameters(library: Library) -> None:
    """18. ``add_param_group`` after steps, generators and named parameters work; sets and overlapping groups raise, duplicates warn."""
    a, b, c = parameters(((2,), (3,), (4,)))
    opt = library.make("AdamW", (p for p in [a]), lr=0.1)
    train(opt, [a], [0])
    opt.add_param_group({"params": (p for p in [b]), "lr": 0.2, "weight_decay": 0.0})
    assert [group["lr"] for group in opt.param_groups] == [0.1, 0.2]
    before = values([a, b])
    train(opt, [a, b], [1])
    assert not torch.equal(a, before[0]) and not torch.equal(b, before[1])
    assert float(opt.state[a]["step"]) == 2 and float(opt.state[b]["step"]) == 1
    expect(ValueError, lambda: opt.add_param_group({"params": [a, c]}), "more than one parameter group")
    expect(TypeError, lambda: opt.add_param_group({"params": {c}}), "ordered collections")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expect(UserWarning, lambda: library.make("AdamW", [c, c]), "duplicate parameters")
    named = library.make("AdamW", [("first", a), ("second", b)])
    assert named.param_groups[0]["param_names"] == ["first", "second"]
    train(named, [a, b], [0])
    assert named.state_dict()["param_groups"][0]["param_names"] == ["first", "second"]
    expect(ValueError, lambda: library.make("AdamW", [("first", a), b]), "names")
    expect(ValueError, lambda: library.make("AdamW", []), "empty parameter list")


# --- 19 to 22: kinds of tensors, and checkpoints ---------------------------------------------------------------------------


def distributed_tensors(library: Library) -> None:
    """19. A ``DTensor`` is updated locally, and its state is a ``DTensor`` of the same placement."""
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    with device_mesh() as mesh:
        for name, options in (("AdamW", {}), ("SGD", {"momentum": 0.9, "lr": 0.1})):
            plain = parameters(torch_problems.MATRICES)
            params = [torch.nn.Parameter(distribute_tensor(p.detach().clone(), mesh, [Shard(0)])) for p in plain]
            opt, other = library.make(name, params, **options), library.make(name, plain, **options)
            for step in range(3):
                for p, q, g in zip(params, plain, gradients(plain, step), strict=True):
                    p.grad, q.grad = distribute_tensor(g, mesh, [Shard(0)]), g
                opt.step()
                other.step()
            for p, q in zip(params, plain, strict=True):
                torch.testing.assert_close(p.to_local(), q, rtol=1e-5, atol=1e-6)  # type: ignore[attr-defined]
                kept = [t for t in opt.state[p].values() if isinstance(t, torch.Tensor) and t.ndim]
                assert kept and all(isinstance(t, DTensor) and t.placements == (Shard(0),) for t in kept)


def kinds_of_tensors(library: Library) -> None:
    """20. Parameters may be zero-size, 0-d, non-contiguous or complex; gradients may be sparse, uncoalesced or absent."""
    base = parameters(((6, 4), (0, 3), (), (4, 4)))
    for name, options in (("AdamW", {}), ("SGD", {"lr": 0.1, "momentum": 0.9})):
        both = []
        for make in (library.make, _torch):
            params = copies(base)
            params[0].data = params[0].data[::2].T  # strides of 1 and 8
            params.append(torch.nn.Parameter(torch.complex(base[3].detach(), base[3].detach() + 1)))
            opt = make(name, params, **options)
            for step in range(3):
                for p, g in zip(params, gradients(params, step), strict=True):
                    p.grad = g.T.contiguous().T if g.ndim == 2 else g
                params[3].grad = None
                opt.step()
            both.append(params)
        assert torch.equal(both[0][3], base[3])
        for p, q in zip(*both, strict=True):
            assert p.stride() == q.stride()
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
    both = []
    for make in (library.make, _torch):
        table = torch.nn.Embedding(5, 3, sparse=True)
        torch.nn.init.ones_(table.weight)
        opt = make("SGD", table.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            table(torch.tensor([1, 3, 1])).square().sum().backward()
            opt.step()
        both.append(table.weight)
    torch.testing.assert_close(*both)


def schedule_free_modes(library: Library) -> None:
    """21. ``train()`` and ``eval()`` of schedule-free optimizers switch between iterate and average, bit for bit."""
    make = library.with_option("schedule-free")
    params, others = parameters(), parameters()
    opt, other = make(params), make(others)
    opt.train()
    train(opt, params, range(5))
    train(other, others, range(5))
    trained = values(params)
    opt.eval()
    averaged = values(params)
    assert not equal(averaged, trained)
    opt.eval()
    assert equal(params, averaged), "again is no change"
    expect(Exception, lambda: train(opt, params, [5]))
    assert equal(params, averaged), "no step is taken on the average"
    opt.train()
    opt.train()
    assert equal(params, trained)
    train(opt, params, range(5, 8))
    train(other, others, range(5, 8))
    assert equal(params, others)


def checkpoints_are_complete(library: Library) -> None:
    """22. Checkpoints contain ``initial_lr`` and the state of parameters that were frozen later."""
    params = parameters()
    opt = library.make("AdamW", params, lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    for step in range(2):
        train(opt, params, [step])
        scheduler.step()
    params[0].requires_grad_(False).grad = None
    file = io.BytesIO()
    torch.save(opt.state_dict(), file)
    file.seek(0)
    others = copies(params)
    others[0].requires_grad_(False)
    other = library.make("AdamW", others, lr=0.7)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert other.param_groups[0]["initial_lr"] == 0.1 and other.param_groups[0]["lr"] == 0.025
    torch.optim.lr_scheduler.ExponentialLR(other, 0.5, last_epoch=2)
    other.param_groups[0]["lr"] = opt.param_groups[0]["lr"]
    assert len(other.state) == len(params) and equal(states(other), states(opt))
    for p in (params[0], others[0]):
        p.requires_grad_(True)
    train(opt, params, range(2, 5))
    train(other, others, range(2, 5))
    assert equal(others, params)


REQUIREMENTS: list[Callable[[Library], None]] = [
    is_an_optimizer,
    copies_continue,
    parameters_may_be_replaced,
    state_is_lazy,
    loading_preserves_dtypes,
    quantized_state_survives_fsdp,
    distributed_checkpoints_initialize_state,
    low_order_parts_are_in_checkpoints,
    loading_copies,
    closures_are_called,
    schedulers_wrap_step,
    hyperparameters_are_read_each_step,
    gradients_are_unscaled,
    skipped_steps_are_detected,
    hooks_are_called,
    flags_follow_the_rules,
    steps_may_be_numbers,
    groups_of_parameters,
    distributed_tensors,
    kinds_of_tensors,
    schedule_free_modes,
    checkpoints_are_complete,
]


def outcome(requirement: Callable[[Library], None], library: Library) -> str:
    """Whether a property holds for a library: "yes", "no", or "–" if the library lacks the feature."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of peers; a requirement about a warning sets its own filters
        try:
            requirement(library)
        except NotOffered:
            return "–"
        except Exception:  # noqa: BLE001 - any error of a peer means no
            return "no"
        return "yes"
