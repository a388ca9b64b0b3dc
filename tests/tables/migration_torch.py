"""The claims of each row of from_torch.md, run with PyTorch and with ours: numbers that must agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oxigrad as ox
from migration import Pair, V, X, cubes
from migration_steps import GRADS, START, STEPS, at_steps, moved, raises, trained
from oxigrad import optim, schedules, xp

METRICS = [3.0, 2.0, 2.5, 2.4, 2.3, 1.0, 1.5, 1.5, 1.5, math.nan]


def of_torch() -> dict[str, Callable[[], Iterator[Pair]]]:
    """The rows of from_torch.md by their first name."""
    return {**of_derivatives(), **of_optimizers(), **of_steps(), **of_schedules()}


def of_derivatives() -> dict[str, Callable[[], Iterator[Pair]]]:
    import torch
    import torch.utils.checkpoint

    theirs, ours = cubes(torch), cubes(xp)
    functional, func = torch.autograd.functional, torch.func
    x, v = torch.tensor(X), torch.tensor(V)

    def leaf() -> Any:
        return torch.tensor(X, requires_grad=True)

    def of(f: Callable[[Any], Any]) -> np.ndarray:
        start = leaf()
        return torch.autograd.grad(f(start), start)[0].numpy()

    def vector(np_: Any) -> Callable[[Any], Any]:
        return lambda x: np_.sin(x) * x[0]

    def backward() -> Iterator[Pair]:
        start = leaf()
        for times in (1.0, 2.0):
            value = theirs(start)
            value.backward()
            yield start.grad.numpy(), times * ox.grad(ours)(X)
        yield from zip((value.item(), start.grad.numpy() / 2), ox.value_and_grad(ours)(X), strict=True)

    def grads() -> Iterator[Pair]:
        yield of(theirs), ox.grad(ours)(X)
        start = leaf()
        found = torch.autograd.grad(vector(torch)(start), start, v)[0]
        yield found.numpy(), ox.vjp(vector(xp), X)[1](V)[0]

    def jacobians() -> Iterator[Pair]:
        expected = functional.jacobian(vector(torch), x)
        yield expected, ox.jacobian(vector(xp))(X)
        yield func.jacrev(vector(torch))(x), ox.jacrev(vector(xp))(X)
        yield func.jacfwd(vector(torch))(x), ox.jacfwd(vector(xp))(X)

    def hessians() -> Iterator[Pair]:
        yield functional.hessian(theirs, x), ox.hessian(ours)(X)
        yield func.hessian(theirs)(x), ox.hessian(ours)(X)

    def products() -> Iterator[Pair]:
        (found,) = ox.hvp(ours, (X,), (V,))
        yield functional.hvp(theirs, x, v)[1], found

    def vjps() -> Iterator[Pair]:
        value, pullback = func.vjp(vector(torch), x)
        own_value, own_pullback = ox.vjp(vector(xp), X)
        yield from ((value, own_value), (pullback(v)[0], own_pullback(V)[0]))
        yield from zip(func.jvp(vector(torch), (x,), (v,)), ox.jvp(vector(xp), (X,), (V,)), strict=True)

    def no_grad() -> Iterator[Pair]:
        def their(x: Any) -> Any:
            with torch.no_grad():
                weight = torch.exp(x)
            return torch.sum(weight * x)

        yield of(their), ox.grad(lambda x: xp.sum(ox.stop_gradient(xp.exp(x)) * x))(X)
        yield X, np.log(ox.stop_gradient(xp.exp(X)))  # without a transform: an array

    def detach() -> Iterator[Pair]:
        their = of(lambda x: torch.sum(torch.exp(x).detach() * x))
        yield their, ox.grad(lambda x: xp.sum(ox.stop_gradient(xp.exp(x)) * x))(X)

    def functions() -> Iterator[Pair]:
        """A rule that is no derivative, so that it is seen to be used."""

        class Clipped(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return torch.clip(g * 3 * x**2, -0.5, 0.5)

        own = ox.custom_vjp(lambda x: x**3, lambda g, out, x: xp.clip(g * 3 * x**2, -0.5, 0.5))
        yield of(lambda x: Clipped.apply(x).sum()), ox.grad(lambda x: xp.sum(own(x)))(X)

    def checkpoints() -> Iterator[Pair]:
        their = of(lambda x: torch.utils.checkpoint.checkpoint(theirs, x, use_reentrant=False))
        yield their, ox.grad(ox.checkpoint(ours))(X)

    def gradcheck() -> Iterator[Pair]:
        class Wrong(torch.autograd.Function):
            forward = staticmethod(lambda ctx, x: x**3)
            backward = staticmethod(lambda ctx, g: g)

        wrong = ox.custom_vjp(lambda x: x**3, lambda g, out, x: g)
        for their, own in ((theirs, ours), (lambda x: Wrong.apply(x).sum(), lambda x: xp.sum(wrong(x)))):
            yield (
                raises(lambda their=their: torch.autograd.gradcheck(their, (leaf(),))),
                raises(lambda own=own: ox.testing.check_grads(own, (X,))),
            )

    return {
        "torch.Tensor.backward": backward,
        "torch.autograd.grad": grads,
        "torch.autograd.functional.jacobian": jacobians,
        "torch.autograd.functional.hessian": hessians,
        "torch.autograd.functional.hvp": products,
        "torch.func.vjp": vjps,
        "torch.no_grad": no_grad,
        "torch.Tensor.detach": detach,
        "torch.autograd.Function": functions,
        "torch.utils.checkpoint.checkpoint": checkpoints,
        "torch.autograd.gradcheck": gradcheck,
    }


def of_optimizers() -> dict[str, Callable[[], Iterator[Pair]]]:
    import torch

    def both(their: type, own: Any, **options: Any) -> Pair:
        parameter = torch.tensor(START, requires_grad=True)
        opt = their([parameter], **options)
        for g in GRADS:
            parameter.grad = torch.tensor(g)
            opt.step()
        return moved(parameter.detach().numpy(), trained(own))

    def sgd() -> Iterator[Pair]:
        yield both(torch.optim.SGD, optim.SGD(0.1, 0.9, nesterov=True), lr=0.1, momentum=0.9, nesterov=True)
        own = optim.SGD(0.1, 0.9, dampening=0.5, compat="torch")
        yield both(torch.optim.SGD, own, lr=0.1, momentum=0.9, dampening=0.5)
        yield both(torch.optim.SGD, optim.SGD())

    def adam() -> Iterator[Pair]:
        yield both(torch.optim.Adam, optim.Adam())
        own = optim.chain(optim.Regularize(l2=0.2), optim.Adam(0.1))
        yield both(torch.optim.Adam, own, lr=0.1, weight_decay=0.2)

    def lbfgs() -> Iterator[Pair]:
        def loss(np_: Any) -> Callable[[Any], Any]:
            return lambda x: np_.sum((x[1:] - x[:-1] ** 2) ** 2) + np_.sum((x - 1.0) ** 2)

        def backward(their: Any, parameter: Any) -> Any:
            their.zero_grad()
            value = loss(torch)(parameter)
            value.backward()
            return value

        for search in (None, "strong_wolfe"):
            parameter, model = torch.tensor(X, requires_grad=True), {"w": X.copy()}
            their = torch.optim.LBFGS([parameter], lr=0.5, line_search_fn=search)
            own = optim.LBFGS(0.5, compat="torch", line_search=search)
            for _ in range(2):
                their.step(lambda their=their, p=parameter: backward(their, p))
                own.minimize(lambda model: loss(xp)(model["w"]), model)
            yield parameter.detach().numpy(), model["w"]

    def state() -> Iterator[Pair]:
        parameter, model = torch.tensor(START, requires_grad=True), {"w": START.copy()}
        their, own = torch.optim.Adam([parameter]), optim.Adam()
        for g in GRADS:
            parameter.grad = torch.tensor(g)
            their.step()
            own.update(model, {"w": g})
        found = their.state_dict()["state"][0]
        saved = own.state_dict()
        yield found["step"].item(), own.step
        for name, ours in {"exp_avg": "m", "exp_avg_sq": "v"}.items():
            yield found[name].numpy() * 1e8, own.slots["w"][ours] * 1e8
        again = optim.Adam()
        again.load_state_dict(saved)
        yield found["exp_avg"].numpy() * 1e8, again.slots["w"]["m"] * 1e8

    return {
        "torch.optim.SGD": sgd,
        "torch.optim.Adam": adam,
        "torch.optim.AdamW": lambda: iter([both(torch.optim.AdamW, optim.AdamW())]),
        "torch.optim.RMSprop": lambda: iter([both(torch.optim.RMSprop, optim.RMSprop(compat="torch"))]),
        "torch.optim.LBFGS": lbfgs,
        "torch.optim.Optimizer.step": lambda: iter([both(torch.optim.Adamax, optim.Adamax(0.1), lr=0.1)]),
        "torch.optim.Optimizer.state_dict": state,
        "torch.optim.Optimizer.load_state_dict": state,
    }


def of_steps() -> dict[str, Callable[[], Iterator[Pair]]]:
    import torch
    from torch.optim import swa_utils

    def zero_grad() -> Iterator[Pair]:
        parameter, model = torch.tensor(X, requires_grad=True), {"w": X.copy()}
        their, own = torch.optim.SGD([parameter], 0.1), optim.SGD(0.1)
        for _ in range(3):
            their.zero_grad()
            cubes(torch)(parameter).backward()
            their.step()
            own.minimize(lambda model: cubes(xp)(model["w"]), model)
        yield parameter.detach().numpy(), model["w"]

    def groups() -> Iterator[Pair]:
        first, second = (torch.tensor(START, requires_grad=True) for _ in range(2))
        their = torch.optim.Adam([first], 0.1)
        own = optim.Adam(0.1, groups={lambda path, array: path == "second": {"learning_rate": 0.3}})
        model = {"first": START.copy()}
        for step, g in enumerate(GRADS):
            if step == 2:
                their.add_param_group({"params": [second], "lr": 0.3})
                model["second"] = START.copy()
                own.rebuild(model)
            first.grad = second.grad = torch.tensor(g)
            their.step()
            model = own.update(model, dict.fromkeys(model, g))
        yield moved(first.detach().numpy(), model["first"])
        yield moved(second.detach().numpy(), model["second"])

    def averages() -> Iterator[Pair]:
        ema = {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)}
        for part, given in ((optim.EMA(0.9, compat="torch"), ema), (optim.SWA(), {})):
            module = torch.nn.Linear(3, 4, bias=False, dtype=torch.float64)
            module.weight.data = torch.tensor(START)
            average = swa_utils.AveragedModel(module, **given)
            their, own, model = torch.optim.SGD(module.parameters(), 0.1), optim.chain(optim.SGD(0.1), part), {}
            model["w"] = START.copy()
            for g in GRADS:
                module.weight.grad = torch.tensor(g)
                their.step()
                average.update_parameters(module)
                own.update(model, {"w": g})
            yield moved(average.module.weight.detach().numpy(), own.averaged_parameters()["w"])

    def clipped(clip: Callable[[Any], Any], part: Any) -> Pair:
        parameter = torch.tensor(START, requires_grad=True)
        their = torch.optim.SGD([parameter], 0.1)
        for g in GRADS:
            parameter.grad = torch.tensor(g)
            clip([parameter])
            their.step()
        return moved(parameter.detach().numpy(), trained(optim.chain(part, optim.SGD(0.1))))

    def by_norm() -> Iterator[Pair]:
        def exactly(parameters: list[Any]) -> None:
            norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
            for p in parameters:
                p.grad *= torch.clip(1.0 / norm, max=1.0)

        yield *clipped(lambda p: torch.nn.utils.clip_grad_norm_(p, 1.0), optim.ClipByGlobalNorm(1.0)), 1e-5
        yield clipped(exactly, optim.ClipByGlobalNorm(1.0))
        tensor = torch.ones(1, dtype=torch.float64, requires_grad=True)
        tensor.grad = torch.ones(1, dtype=torch.float64)
        torch.nn.utils.clip_grad_norm_([tensor], 0.5)
        yield tensor.grad.numpy(), 0.5 / (1.0 + 1e-6)
        own = optim.chain(optim.ClipByGlobalNorm(0.5), optim.SGD(1.0))
        yield 0.5, -own.update({"w": np.zeros(1)}, {"w": np.ones(1)})["w"]

    def scaler() -> Iterator[Pair]:
        """Gradients of which the second overflow, in scales that double every two steps."""
        parameter, model = torch.ones(2, requires_grad=True), {"w": np.ones(2, np.float32)}
        their, scale = torch.optim.SGD([parameter], 0.1), torch.amp.GradScaler("cpu", 2.0**16, growth_interval=2)
        own = optim.SGD(0.1, loss_scale=optim.LossScale(2.0**16, interval=2))
        for step in range(STEPS):
            factor = 1e36 if step == 1 else 1.0
            their.zero_grad()
            scale.scale(factor * (parameter**2).sum()).backward()
            scale.step(their)
            scale.update()
            with np.errstate(over="ignore"):
                own.minimize(lambda model, factor=factor: factor * xp.sum(model["w"] ** 2), model)
            yield parameter.detach().numpy(), model["w"], 1e-6
            yield scale.get_scale(), own.loss_scale.value
        yield 1, own.skipped

    def paths() -> Iterator[Pair]:
        module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
        tree = [{"weight": layer.weight.detach().numpy(), "bias": layer.bias.detach().numpy()} for layer in module]
        theirs = {name: p.detach().numpy() for name, p in module.named_parameters()}
        ours = {str(path).replace("[", "").replace("]", ""): p for path, p in ox.tree.parameters(tree).items()}
        yield theirs.keys() == ours.keys(), True
        yield from ((theirs[name], ours[name]) for name in theirs)

    return {
        "torch.nn.Module.parameters": paths,
        "torch.optim.Optimizer.zero_grad": zero_grad,
        "torch.optim.Optimizer.add_param_group": groups,
        "torch.optim.swa_utils.AveragedModel": averages,
        "torch.nn.utils.clip_grad_norm_": by_norm,
        "torch.nn.utils.clip_grad_value_": lambda: iter(
            [clipped(lambda p: torch.nn.utils.clip_grad_value_(p, 0.3), optim.ClipByValue(0.3))]
        ),
        "torch.amp.GradScaler": scaler,
    }


def of_schedules() -> dict[str, Callable[[], Iterator[Pair]]]:
    import torch

    def scheduled(make: Callable[[Any, Any], Any], own: Any, steps: int) -> Iterator[Pair]:
        opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1, momentum=0.5)
        scheduler, seen = make(torch.optim.lr_scheduler, opt), []
        for _ in range(steps):
            seen.append(scheduler.get_last_lr()[0])
            opt.step()
            scheduler.step()
        return at_steps(seen.__getitem__, own, range(steps))

    def one_cycle() -> Iterator[Pair]:
        own = schedules.one_cycle(0.1, 49, warmup=0.3 * 50 - 1)
        return scheduled(lambda lr, opt: lr.OneCycleLR(opt, 0.1, total_steps=50), own, 50)

    def plateau() -> Iterator[Pair]:
        opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
        their = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
        own = schedules.plateau(0.1, factor=0.5, patience=1)
        for metric in METRICS:
            their.step(metric)
            yield their.get_last_lr()[0], own.observe(metric)

    def last() -> Iterator[Pair]:
        parameter = torch.zeros(1, requires_grad=True)
        opt, own, model = torch.optim.SGD([parameter], 0.1), optim.SGD(schedules.cosine(0.1, 10)), {"w": np.zeros(1)}
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
        for _ in range(STEPS):
            yield scheduler.get_last_lr()[0], own.current("learning_rate")
            opt.step()
            scheduler.step()
            own.update(model, {"w": np.ones(1)})

    return {
        "torch.optim.lr_scheduler.CosineAnnealingLR": lambda: scheduled(
            lambda lr, opt: lr.CosineAnnealingLR(opt, 13, 0.002), schedules.cosine(0.1, 13, final=0.002), 14
        ),
        "torch.optim.lr_scheduler.OneCycleLR": one_cycle,
        "torch.optim.lr_scheduler.ReduceLROnPlateau": plateau,
        "torch.optim.lr_scheduler.LRScheduler.get_last_lr": last,
    }
