"""Modules of PyTorch as trees: their key paths, and steps with the gradients in ``.grad``."""

from __future__ import annotations

import copy
import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim
from python_frames import frames

torch = pytest.importorskip("torch")
nn = torch.nn

OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda **options: optim.SGD(0.1, **options),
    "AdamW": lambda **options: optim.AdamW(0.1, **options),
    "Adafactor": lambda **options: optim.Adafactor(0.1, **options),  # sees whole arrays
    "clipped": lambda **options: optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1), **options),
}


class Net(nn.Module):
    """A module with nesting, a number for a name, no bias, a buffer, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2, bias=False)])
        self.scale = nn.Parameter(torch.ones(()))
        self.blocks = nn.ModuleDict({"end": nn.Linear(2, 2)})
        self.width = 4

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.scale * self.blocks["end"](x)


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x: Any) -> Any:
        return self.b(self.a(x))


def backward(net: Any, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    net.zero_grad()
    net(torch.randn(5, 3, generator=generator)).square().sum().backward()


def values(net: Any) -> dict[str, Any]:
    return {name: p.detach().clone() for name, p in net.named_parameters()}


def versions(net: Any) -> dict[str, int]:
    return {name: p._version for name, p in net.named_parameters()}


# --- trees ---------------------------------------------------------------------------------------------------------------


def test_key_paths_are_the_names_of_torch() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2, bias=False)))
    parameters = ox.tree.parameters(net)
    assert [str(path) for path in parameters] == [name for name, _ in net.named_parameters()]
    assert all(path(net) is p for path, p in parameters.items())
    leaves, structure = ox.tree.flatten(net)
    names = {name for name, _ in (*net.named_parameters(), *net.named_buffers())}
    assert {str(path) for path in structure.paths()} == names and len(leaves) == len(names)
    for name in names:
        assert str(ox.tree.path(name, net)) == name


def test_a_name_that_needs_quotes() -> None:
    net = nn.ModuleDict({"first one": nn.Linear(2, 2), "007": nn.Linear(2, 2, bias=False)})
    paths = [str(path) for path in ox.tree.parameters({"net": net})]
    assert paths == ['net."first one".weight', 'net."first one".bias', 'net."007".weight']
    assert all(ox.tree.path(path, {"net": net})({"net": net}) is not None for path in paths)


def test_rebuilding_makes_new_modules_with_the_same_leaves() -> None:
    net = Net()
    net.eval()
    leaves, structure = ox.tree.flatten(net)
    made = ox.tree.unflatten(structure, leaves)
    assert type(made) is Net and made is not net and made.layers is not net.layers
    assert made.width == 4 and made.layers[2].bias is None and not made.training
    assert [p is q for p, q in zip(made.parameters(), net.parameters(), strict=True)] == [True] * 8
    x = torch.ones(2, 3)
    assert torch.equal(made(x), net(x))
    doubled = ox.tree.map(lambda p: 2 * p.detach(), net)
    assert torch.equal(doubled.layers[0].weight, 2 * net.layers[0].weight)
    assert net.layers[0].weight.requires_grad, "the module itself is as it was"


def test_a_part_is_set_as_an_attribute_is() -> None:
    net, new = Net(), nn.Parameter(torch.zeros(4, 3))
    path = ox.tree.path("layers.0.weight", net)
    assert path.set(net, new) is net and net.layers[0].weight is new and path.writable(net)
    with pytest.raises(TypeError, match="cannot assign"):
        path.set(net, torch.zeros(4, 3))
    with pytest.raises(ox.KeyPathError, match=r"layers.3.*"):
        ox.tree.path("layers.3", net)


def test_a_module_that_is_freed_is_not_kept_by_its_structure() -> None:
    net = Net()
    ref, weight = weakref.ref(net), weakref.ref(net.layers[0].weight)
    structure = ox.tree.flatten(net)[1]
    del net
    assert ref() is None and weight() is None and len(structure) == 11


# --- steps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_takes_the_gradients_of_the_parameters(name: str) -> None:
    net, opt, other = Net(), OPTIMIZERS[name](), OPTIMIZERS[name]()
    plain = {path: p.detach().clone() for path, p in values(net).items()}
    for step in range(3):
        backward(net, step)
        buffers = {path: b.clone() for path, b in net.named_buffers()}
        grads, before = {path: p.grad.clone() for path, p in net.named_parameters()}, versions(net)
        assert opt.update(net) is net
        plain = other.update(plain, grads)
        for path, p in net.named_parameters():
            torch.testing.assert_close(p.detach(), plain[path], msg=f"{path}, step {step}")
            assert torch.equal(p.grad, grads[path])
        assert versions(net) == {path: version + 1 for path, version in before.items()}
        assert all(torch.equal(b, buffers[path]) for path, b in net.named_buffers()), "buffers are not updated"
    assert opt.step == 3 and [*opt.slots] == [str(path) for path in ox.tree.parameters(net)]


def test_adamw_agrees_with_torch() -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    theirs = copy.deepcopy(net)
    opt, reference = optim.AdamW(0.01, weight_decay=0.1), torch.optim.AdamW(theirs.parameters(), 0.01, weight_decay=0.1)
    for step in range(5):
        backward(net, step), backward(theirs, step)
        opt.update(net), reference.step()
    for p, q in zip(net.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_shared_weights_are_one_parameter(name: str) -> None:
    net, opt = Tied(), OPTIMIZERS[name]()
    plain, other = {"w": net.a.weight.detach().clone()}, OPTIMIZERS[name]()
    for step in range(2):
        backward(net, step)
        plain = other.update(plain, {"w": net.a.weight.grad.clone()})
        opt.update(net)
        torch.testing.assert_close(net.a.weight.detach(), plain["w"])
    assert net.a.weight is net.b.weight and [*opt.slots] == ["a.weight"]


def test_frozen_parameters_are_not_updated_and_need_no_gradient() -> None:
    net, opt = Net(), optim.AdamW(0.1)
    net.layers[0].requires_grad_(False)
    backward(net)
    before = values(net)
    opt.update(net)
    changed = {path for path, value in values(net).items() if not torch.equal(value, before[path])}
    assert changed == before.keys() - {"layers.0.weight", "layers.0.bias"} == opt.slots.keys()


def test_parameters_are_frozen_and_thawed_between_steps() -> None:
    net, opt = Net(), optim.AdamW(0.1)
    weight = net.layers[0].weight
    weight.requires_grad_(False)
    backward(net)
    opt.update(net)
    assert "layers.0.weight" not in opt.slots
    weight.requires_grad_(True)
    backward(net)
    before = weight.detach().clone()
    opt.update(net)
    assert not torch.equal(weight, before) and opt.slots["layers.0.weight"]["m"].abs().sum() > 0
    moments = opt.slots["layers.0.weight"]["m"].clone()
    weight.requires_grad_(False)  # and its gradient stays
    before = weight.detach().clone()
    opt.update(net)
    assert torch.equal(weight, before) and torch.equal(opt.slots["layers.0.weight"]["m"], moments)
    assert opt.step == 3


def test_a_parameter_without_a_gradient_is_skipped() -> None:
    net, opt = Net(), optim.AdamW(0.1)
    for missing in (None, "scale", "layers.0.weight", None):
        backward(net)
        for path, p in net.named_parameters():
            p.grad = None if path == missing else p.grad
        before = values(net)
        opt.update(net)
        same = {path for path, value in values(net).items() if torch.equal(value, before[path])}
        assert same == ({missing} if missing else set())
    assert opt.step == 4 and "scale" in opt.slots


def test_a_model_without_any_gradient_is_refused() -> None:
    net, opt = Net(), optim.SGD(0.1)
    before = values(net)
    for _ in range(2):
        with pytest.raises(ox.StructureError, match="no parameter has a gradient"):
            opt.update(net)
        assert opt.step == 0
    backward(net)
    opt.update(net)
    net.zero_grad()
    before = values(net)
    with pytest.raises(ox.StructureError, match="no parameter has a gradient"):
        opt.update(net)
    assert opt.step == 1 and all(torch.equal(value, before[path]) for path, value in values(net).items())
    backward(net)
    opt.update(net)
    assert opt.step == 2


def test_gradients_that_are_given() -> None:
    net, opt = Net(), optim.SGD(1.0)
    backward(net)
    grads = ox.tree.map(lambda p: torch.ones_like(p) if p.is_floating_point() else p, net)
    before = values(net)
    opt.update(net)  # those that it holds
    net.scale.grad = None
    opt.update(net)  # and one fewer
    after = values(net)
    opt.update(net, grads)
    torch.testing.assert_close(net.scale.detach(), after["scale"] - 1)
    assert not torch.equal(before["scale"], after["scale"]) and opt.step == 3


@dataclasses.dataclass
class Pair:
    net: Any
    others: dict[str, Any]


def test_modules_within_other_containers() -> None:
    tree = {"a": Pair(nn.Linear(2, 2), {"b": nn.Linear(2, 1)}), "rate": 0.5}
    opt, before = optim.SGD(1.0), None
    (tree["a"].others["b"](tree["a"].net(torch.ones(1, 2)))).sum().backward()
    before = values(tree["a"].net)
    grad = tree["a"].net.weight.grad.clone()
    assert opt.update(tree) is tree
    torch.testing.assert_close(tree["a"].net.weight.detach(), before["weight"] - grad)
    mixed = {**tree, "w": np.ones(2)}
    with pytest.raises(ox.StructureError, match=r"^w: the gradient is missing"):
        optim.SGD(1.0).update(mixed)
    optim.SGD(1.0, groups={"w": None}).update(mixed)
    with pytest.raises(ox.StructureError, match=r"^w: the gradient is missing"):
        optim.SGD(1.0).update({"w": np.ones(2)})


def test_a_part_that_is_replaced_is_found() -> None:
    net, opt = Net(), optim.AdamW(0.1)
    backward(net)
    opt.update(net)
    old = net.layers[2].weight
    net.layers[2].weight = nn.Parameter(torch.ones(2, 4))
    net.scale.data = torch.full((), 3.0)
    backward(net)
    kept, before = old.detach().clone(), values(net)
    opt.update(net)
    assert torch.equal(old, kept)
    for path, value in values(net).items():
        assert not torch.equal(value, before[path]), path
    net.added = nn.Linear(2, 2)
    net.forward = lambda x: net.added(Net.forward(net, x))
    backward(net)
    with pytest.raises(ox.StructureError, match="added.weight: the parameter is new"):
        opt.update(net)


def test_a_step_that_fails_changes_nothing() -> None:
    net, opt = Net(), optim.AdamW(0.1)
    for step in range(2):
        backward(net, step)
        opt.update(net)
    backward(net)
    net.layers[2].weight.data = torch.ones(3, 4)  # which its slots do not fit
    before, counts = values(net), versions(net)
    with pytest.raises(ox.ShapeError, match=r"layers\.2\.weight"):
        opt.update(net)
    assert opt.step == 2 and versions(net) == counts
    assert all(torch.equal(value, before[path]) for path, value in values(net).items())


def test_a_step_that_a_guard_stops_changes_nothing() -> None:
    net, opt = Net(), optim.AdamW(0.1, nonfinite="skip")
    backward(net)
    opt.update(net)
    net.scale.grad.fill_(float("nan"))
    before, counts = values(net), versions(net)
    assert opt.update(net) is net
    assert opt.skipped == 1 and versions(net) == counts
    assert all(torch.equal(value, before[path]) for path, value in values(net).items())


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: torch.ones(2, 4, device="meta"), "meta"),
        (lambda: torch.ones(2, 4).to_sparse(), "layout torch.sparse_coo"),
        (lambda: torch.complex(torch.ones(2, 4), torch.ones(2, 4)), "complex64"),
    ],
)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_that_no_step_can_update(name: str, make: Callable[[], Any], what: str) -> None:
    net = Net()
    backward(net)
    net.layers[2].weight = nn.Parameter(make())
    net.layers[2].weight.grad = make()
    before, counts = values(net.layers[0]), versions(net)
    with pytest.raises((ox.ArrayMemoryError, ox.DtypeError), match=rf"^layers\.2\.weight: the parameter .*{what}"):
        OPTIMIZERS[name]().update(net)
    assert versions(net) == counts
    assert all(torch.equal(value, before[path]) for path, value in values(net.layers[0]).items())


def test_gradients_are_left_zero() -> None:
    for name in ("AdamW", "Adafactor"):
        net, opt = Net(), OPTIMIZERS[name](zero_gradients=True)
        for step in range(2):
            backward(net, step)
            opt.update(net)
            assert not any(p.grad.any() for p in net.parameters())


def test_a_state_is_saved_and_loaded(tmp_path: Any) -> None:
    net, opt = Net(), optim.AdamW(0.1)
    net.layers[0].bias.requires_grad_(False)
    for step in range(2):
        backward(net, step)
        opt.update(net)
    opt.save(tmp_path / "state")
    twin, other = copy.deepcopy(net), optim.AdamW(0.1)
    other.load(tmp_path / "state")
    for each, o in ((net, opt), (twin, other)):
        backward(each, 2)
        o.update(each)
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


def test_averages_are_swapped_with_the_parameters() -> None:
    net, opt = Net(), optim.chain(optim.SGD(1.0), optim.EMA(decay=0.5))
    backward(net)
    opt.update(net)
    before = values(net)
    average = {path: value.clone() for path, value in opt.averaged_parameters().items()}
    assert opt.swap_in(net) is net
    assert all(torch.equal(value, average[path]) for path, value in values(net).items())
    assert opt.swap_out(net) is net
    assert all(torch.equal(value, before[path]) for path, value in values(net).items())


def test_a_steady_step_runs_few_frames() -> None:
    net, opt = Net(), optim.AdamW(0.1)
    for step in range(3):
        backward(net, step)
        opt.update(net)
    found = frames(lambda: opt.update(net))
    assert 1 <= len(found) <= 12, found


def test_an_optimizer_keeps_no_module_and_no_parameter() -> None:
    net, opt = Net(), optim.AdamW(0.1)
    for step in range(3):
        backward(net, step)
        opt.update(net)
    refs = [weakref.ref(x) for x in (net, net.scale, net.scale.grad, net.layers[0].weight)]
    del net
    assert [ref() for ref in refs] == [None] * 4
