"""Changes between steps of what an optimizer for PyTorch steps on: its groups, parameters, gradients, state and options.

Each is a function of the optimizer and a random source, which is the same for PyTorch's class and ours. It changes in place what a step
is resolved from.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch

from torch_problems import drawn

Change = Callable[[Any, random.Random], None]


def all_params(opt: Any) -> list[Any]:
    return [p for group in opt.param_groups for p in group["params"]]


def with_rate(group: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    return {**group, "lr": draw.uniform(0.01, 0.1)}


def replaced_group(opt: Any, draw: random.Random) -> None:
    number = draw.randrange(len(opt.param_groups))
    opt.param_groups[number] = with_rate(opt.param_groups[number], draw)


def replaced_groups(opt: Any, draw: random.Random) -> None:
    opt.param_groups = [with_rate(group, draw) for group in opt.param_groups]


def replaced_groups_in_place(opt: Any, draw: random.Random) -> None:
    opt.param_groups[:] = [{**with_rate(group, draw), "weight_decay": 0.1} for group in opt.param_groups]


def reversed_groups(opt: Any, draw: random.Random) -> None:
    opt.param_groups.reverse()


def exchanged_values(opt: Any, draw: random.Random) -> None:
    """The dicts of two groups change places, with the parameters where they were."""
    first, last = opt.param_groups[0], opt.param_groups[-1]
    first["params"], last["params"] = last["params"], first["params"]
    opt.param_groups[0], opt.param_groups[-1] = last, first


def split_group(opt: Any, draw: random.Random) -> None:
    group = max(opt.param_groups, key=lambda group: len(group["params"]))
    if len(group["params"]) > 1:
        at = [other is group for other in opt.param_groups].index(True)
        rest = group["params"][1:]
        del group["params"][1:]
        opt.param_groups.insert(at + 1, {**with_rate(group, draw), "params": rest})


def merged_groups(opt: Any, draw: random.Random) -> None:
    first, *others = opt.param_groups
    for group in others:
        first["params"].extend(group["params"])
    del opt.param_groups[1:]


def moved_boundary(opt: Any, draw: random.Random) -> None:
    """The first parameter of the last group becomes the last one of the group before: the order of all stays."""
    if len(opt.param_groups) > 1 and len(opt.param_groups[-1]["params"]) > 1:
        opt.param_groups[-2]["params"].append(opt.param_groups[-1]["params"].pop(0))


def moved_parameter(opt: Any, draw: random.Random) -> None:
    if len(opt.param_groups[0]["params"]) > 1:
        opt.param_groups[-1]["params"].append(opt.param_groups[0]["params"].pop(0))


def reversed_parameters(opt: Any, draw: random.Random) -> None:
    opt.param_groups[0]["params"].reverse()


def list_replaced(opt: Any, draw: random.Random) -> None:
    group = draw.choice(opt.param_groups)
    group["params"] = [*group["params"]]


def removed_parameter(opt: Any, draw: random.Random) -> None:
    if len(all_params(opt)) > 2 and len(opt.param_groups[0]["params"]) > 1:
        opt.param_groups[0]["params"].pop()


def replaced_parameter(opt: Any, draw: random.Random) -> None:
    params = draw.choice([group["params"] for group in opt.param_groups if group["params"]])
    params[0] = torch.nn.Parameter(params[0].detach().clone() + 0.1)


def replaced_memory(opt: Any, draw: random.Random) -> None:
    p = draw.choice(all_params(opt))
    p.data = p.data * 0.5


def frozen_parameter(opt: Any, draw: random.Random) -> None:
    draw.choice(all_params(opt)).requires_grad_(False)


def thawed_parameters(opt: Any, draw: random.Random) -> None:
    for p in all_params(opt):
        p.requires_grad_(True)


def rate(opt: Any, draw: random.Random) -> None:
    draw.choice(opt.param_groups)["lr"] = draw.uniform(0.01, 0.1)


def rate_of_zero(opt: Any, draw: random.Random) -> None:
    draw.choice(opt.param_groups)["lr"] = 0.0


def rate_as_tensor(opt: Any, draw: random.Random) -> None:
    draw.choice(opt.param_groups)["lr"] = torch.tensor(draw.uniform(0.01, 0.1), dtype=torch.float64)


def rate_in_place(opt: Any, draw: random.Random) -> None:
    for group in opt.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].mul_(0.5)


def decay(opt: Any, draw: random.Random) -> None:
    draw.choice(opt.param_groups)["weight_decay"] = draw.choice([0.0, 0.1])


def maximize(opt: Any, draw: random.Random) -> None:
    group = draw.choice(opt.param_groups)
    group["maximize"] = not group["maximize"]


def defaults(opt: Any, draw: random.Random) -> None:
    opt.defaults["lr"] = 7.0


def further_key(opt: Any, draw: random.Random) -> None:
    draw.choice(opt.param_groups)["of the user"] = torch.ones(2)


def added_group(opt: Any, draw: random.Random) -> None:
    values = torch.linspace(-1, 1, draw.randint(1, 4), dtype=torch.float64)
    opt.add_param_group({"params": [torch.nn.Parameter(values)], "lr": 0.05})


def slots_of(opt: Any, draw: random.Random) -> tuple[Any, dict[str, Any]] | None:
    """A parameter that has a state, and the state."""
    with_state = [p for p in all_params(opt) if opt.state.get(p)]
    p = draw.choice(with_state) if with_state else None
    return None if p is None else (p, opt.state[p])


def arrays_of(state: dict[str, Any]) -> list[str]:
    return sorted(key for key, value in state.items() if isinstance(value, torch.Tensor) and key != "step")


def replaced_slot(opt: Any, draw: random.Random) -> None:
    if found := slots_of(opt, draw):
        for key in arrays_of(found[1])[:1]:
            found[1][key] = found[1][key] * 0.5


def slot_in_place(opt: Any, draw: random.Random) -> None:
    if found := slots_of(opt, draw):
        for key in arrays_of(found[1])[:1]:
            found[1][key].mul_(0.5)


def renamed_slots(opt: Any, draw: random.Random) -> None:
    """Two slots exchange their names, with the values in the same order."""
    if found := slots_of(opt, draw):
        p, state = found
        keys = [key for key in arrays_of(state) if state[key].shape == p.shape]
        names = dict(zip(keys, keys[1:] + keys[:1], strict=True))
        for value in state.values():
            value.abs_()  # as roots are taken of some
        opt.state[p] = {names.get(key, key): value for key, value in state.items()}


def copied_state(opt: Any, draw: random.Random) -> None:
    for p in [*opt.state]:
        opt.state[p] = dict(opt.state[p])


def exchanged_states(opt: Any, draw: random.Random) -> None:
    """The states of two parameters of one shape change places, in the same order."""
    # In the order of the groups: steps in the backward make states in the order of gradients.
    params = [p for group in opt.param_groups for p in group["params"] if opt.state.get(p)]
    for p in params:
        for q in params:
            if p is not q and p.shape == q.shape and opt.state[p].keys() == opt.state[q].keys():
                keys = [q if key is p else p if key is q else key for key in opt.state]
                states = [*opt.state.values()]
                opt.state.clear()
                opt.state.update(zip(keys, states, strict=True))
                return


def dropped_state(opt: Any, draw: random.Random) -> None:
    if found := slots_of(opt, draw):
        del opt.state[found[0]]


def cleared_state(opt: Any, draw: random.Random) -> None:
    opt.state.clear()


def count_in_place(opt: Any, draw: random.Random) -> None:
    if (found := slots_of(opt, draw)) and "step" in found[1]:
        found[1]["step"].fill_(float(draw.randint(0, 20)))


def count_replaced(opt: Any, draw: random.Random) -> None:
    if (found := slots_of(opt, draw)) and "step" in found[1]:
        found[1]["step"] = torch.tensor(float(draw.randint(0, 20)))


def loaded_state(opt: Any, draw: random.Random) -> None:
    opt.load_state_dict(copy.deepcopy(opt.state_dict()))


def hook(opt: Any, draw: random.Random) -> None:
    def halve(opt: Any, *_: Any) -> None:
        for group in opt.param_groups:
            group["lr"] = group["lr"] * 0.5

    opt.register_step_pre_hook(halve)


CHANGES: dict[str, Change] = {
    function.__name__: function
    for function in (
        replaced_group,
        replaced_groups,
        replaced_groups_in_place,
        reversed_groups,
        exchanged_values,
        split_group,
        merged_groups,
        moved_boundary,
        moved_parameter,
        reversed_parameters,
        list_replaced,
        removed_parameter,
        replaced_parameter,
        replaced_memory,
        frozen_parameter,
        thawed_parameters,
        rate,
        rate_of_zero,
        rate_as_tensor,
        rate_in_place,
        decay,
        maximize,
        defaults,
        further_key,
        added_group,
        replaced_slot,
        slot_in_place,
        renamed_slots,
        copied_state,
        exchanged_states,
        dropped_state,
        cleared_state,
        count_in_place,
        count_replaced,
        loaded_state,
        hook,
    )
}
# The classes, with their arguments, that both have to the same digits.
CLASSES: dict[str, dict[str, Any]] = {
    "AdamW": {},
    "SGD": {"momentum": 0.9, "dampening": 0.1},
    "RMSprop": {"momentum": 0.5},
    "NAdam": {},
    "Rprop": {},
    "Adafactor": {},
}


def made(module: Any, name: str, **further: Any) -> Any:
    """An optimizer of five parameters in three groups."""
    shapes = [(5,), (2, 3), (5,), (), (2, 3)]
    generator = torch.Generator().manual_seed(0)
    params = [torch.nn.Parameter(drawn(shape, generator, torch.float64)) for shape in shapes]
    groups = [{"params": params[:2]}, {"params": params[2:4], "lr": 0.03}, {"params": params[4:], "lr": 0.07}]
    return getattr(module, name)(groups, lr=0.05, **CLASSES[name], **further)


def take(opt: Any, step: int, without: int | None = None) -> None:
    """A step by a backward; the parameter at the place ``without`` has no gradient."""
    opt.zero_grad()
    trained = [p for at, p in enumerate(all_params(opt)) if p.requires_grad and at != without]
    terms = [(torch.sin(p * (1 + at % 3)) + p * step * 0.1).sum() for at, p in enumerate(trained)]
    if terms:
        torch.stack(terms).sum().backward()
    opt.step()


def results(opt: Any) -> list[Any]:
    """The parameters, and the numbers of steps."""
    params = all_params(opt)
    counts = [float(opt.state.get(p, {}).get("step", 0)) for p in params]
    return [*(p.detach().clone() for p in params), torch.tensor(counts, dtype=torch.float64)]
