"""PyTorch's tensors as parameters and gradients: lazy views, the count of changes, and tensors without memory."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, optim, xp
from oxigrad.ops.backends import resolved, to_host

torch = pytest.importorskip("torch")

VALUES = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda **options: optim.SGD(0.1, **options),
    "Adam": lambda **options: optim.Adam(0.1, **options),
    "Muon": lambda **options: optim.Muon(0.1, **options),  # sees whole arrays
    "Adafactor": lambda **options: optim.Adafactor(0.1, **options),
    "Prodigy": lambda **options: optim.Prodigy(0.1, **options),  # has totals over all parameters
    "clipped": lambda **options: optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1), **options),
}


def tensor(values: Any = VALUES) -> Any:
    return torch.tensor(values, dtype=torch.float64)


def negative(values: Any = VALUES) -> Any:
    """A lazy view that reads as ``values``, with their negatives in memory."""
    view = torch.complex(tensor(values), -tensor(values)).conj().imag
    assert view.is_neg() and torch.equal(view, tensor(values))
    return view


# --- lazy views ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kind", [tensor, np.array], ids=["torch", "numpy"])
def test_a_gradient_that_is_a_lazy_view(name: str, kind: Any) -> None:
    opt, other = OPTIMIZERS[name](), OPTIMIZERS[name]()
    if kind is np.array and not opt._rule.elementwise:
        pytest.skip("a rule on arrays takes gradients of the parameter's library")
    model, plain = ({"w": kind(VALUES), "b": kind([[1.0]])} for _ in range(2))
    for values in (np.array(VALUES), -2 * np.array(VALUES)):
        given = {"w": negative(values), "b": kind([[2.0]])}
        model = opt.update(model, given)
        plain = other.update(plain, {"w": kind(values), "b": kind([[2.0]])})
        assert given["w"].is_neg(), "the gradient is not changed"
    np.testing.assert_array_equal(np.asarray(model["w"]), np.asarray(plain["w"]))


def test_a_gradient_becomes_a_lazy_view_at_the_same_address() -> None:
    opt, model, g = optim.SGD(1.0), {"w": tensor([0.0])}, tensor([1.0])
    opt.update(model, {"w": g})
    opt.update(model, {"w": torch._neg_view(g)})
    assert model["w"].item() == 0.0


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_that_is_a_lazy_view_is_refused_by_path(name: str) -> None:
    p, other = negative(), tensor()
    with pytest.raises(ox.ArrayMemoryError, match=r"layers\[0\]\.w|layers\.0\.w.*negative bit.*resolve_neg"):
        OPTIMIZERS[name]().update({"a": other, "layers": [{"w": p}]}, {"a": tensor(), "layers": [{"w": tensor()}]})
    assert torch.equal(p, tensor()) and torch.equal(other, tensor())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_becomes_a_lazy_view(name: str) -> None:
    opt, model, grads = OPTIMIZERS[name](), {"w": tensor()}, {"w": tensor()}
    opt.update(model, grads)
    model["w"] = torch._neg_view(model["w"])
    before = model["w"].clone()
    with pytest.raises(ox.ArrayMemoryError, match="w: the parameter is a lazy view"):
        opt.update(model, grads)
    assert torch.equal(model["w"], before) and opt.step == 1


def test_zeros_are_not_left_in_a_lazy_view() -> None:
    model, g = {"w": tensor()}, negative()
    with pytest.raises(ox.ArrayMemoryError, match="w: the gradient"):
        optim.SGD(0.1, zero_gradients=True).update(model, {"w": g})
    assert torch.equal(model["w"], tensor()) and torch.equal(g, tensor())


def test_tied_and_sparse_gradients_that_are_lazy_views() -> None:
    w = tensor()
    model = optim.SGD(1.0).update({"a": w, "b": w}, {"a": negative(), "b": tensor()})
    assert torch.equal(model["a"], -tensor())
    rows = ox.SparseRows(torch.tensor([1]), negative([[1.0, 2.0, 3.0]]), (2, 3))
    model = optim.SGD(1.0, sparse="lazy").update({"w": tensor()}, {"w": rows})
    assert model["w"].tolist() == [VALUES[0], [3.0, 3.0, -9.0]]


@pytest.mark.parametrize(
    "value", [negative(), torch.complex(tensor(), tensor()).conj(), torch._efficientzerotensor((2, 3))]
)
def test_a_lazy_view_in_host_memory(value: Any) -> None:
    expected = value.resolve_conj().resolve_neg() + 0
    np.testing.assert_array_equal(to_host(value), expected.numpy())
    assert resolved(expected) is expected


def test_lazy_views_are_differentiated() -> None:
    f = lambda x: xp.sum(xp.gammainc(3.0, xp.abs(x)) * x)  # noqa: E731  gammainc goes through host memory where it must
    for g in (ox.grad(f), lambda x: ox.jvp(f, (x,), (negative(),))[1], f):
        np.testing.assert_allclose(np.asarray(g(negative())), np.asarray(g(tensor())))
    _, pull = ox.vjp(lambda x: x * x, tensor())
    np.testing.assert_array_equal(
        np.asarray(pull(negative())[0] if isinstance(pull(negative()), tuple) else pull(negative())),
        2 * np.square(VALUES),
    )


def test_the_core_reads_no_lazy_view() -> None:
    assert _core.exports_memory(tensor()) and not _core.exports_memory(negative())
    target = np.zeros((2, 3))
    with pytest.raises(TypeError, match="host memory"):
        _core.copy(negative(), target)
    assert not target.any()


def test_a_state_with_lazy_views_is_loaded_as_it_reads() -> None:
    opt, model = optim.SGD(0.1, 0.9), {"w": tensor()}
    opt.update(model, {"w": tensor()})
    state = opt.state_dict()
    state["slots"]["w"]["m"] = negative()
    opt.load_state_dict(state)
    np.testing.assert_array_equal(np.asarray(opt.slots["w"]["m"]), VALUES)


# --- other tensors than those with memory of their own -----------------------------------------------------------------


class Subclass(torch.Tensor):
    pass


def csr() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is in beta state
        return tensor().to_sparse_csr()


def freed() -> Any:
    made = tensor()
    made.untyped_storage().resize_(0)
    return made


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: tensor().to_sparse(), "layout torch.sparse_coo"),
        (csr, "layout torch.sparse_csr"),
        (freed, "storage is freed"),
        (lambda: torch._efficientzerotensor((2, 3), dtype=torch.float64), "zeros without memory"),
    ],
)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_that_no_step_can_update(name: str, make: Any, what: str) -> None:
    other = tensor()
    with pytest.raises(ox.ArrayMemoryError, match=f"w: the parameter is a tensor.*{what}|w: the parameter is.*{what}"):
        OPTIMIZERS[name]().update({"a": other, "w": make()}, {"a": tensor(), "w": tensor()})
    assert torch.equal(other, tensor())


@pytest.mark.parametrize("make", [lambda: tensor().to_sparse(), csr, freed])
def test_gradients_that_no_step_can_read(make: Any) -> None:
    other = tensor()
    with pytest.raises(ox.ArrayMemoryError, match="w: the gradient does not share its memory"):
        optim.Adam().update({"a": other, "w": tensor()}, {"a": tensor(), "w": make()})
    assert torch.equal(other, tensor())


@pytest.mark.parametrize("make", [freed, lambda: torch.ones(2, device="meta")])
def test_no_numbers_are_read_where_there_is_no_memory(make: Any) -> None:
    with pytest.raises((BufferError, TypeError, RuntimeError)):
        to_host(make())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_tensors_that_are_read_like_any_other(name: str) -> None:
    plain = OPTIMIZERS[name]().update({"w": tensor()}, {"w": tensor()})["w"]
    with torch.inference_mode():
        inference = tensor()
    kinds = {
        "parameter": torch.nn.Parameter(tensor()),
        "subclass": tensor().as_subclass(Subclass),
        "recorded": torch.nn.Parameter(tensor()) * 1,
        "inference": inference,
        "transposed": tensor().T.clone().T,
    }
    for kind, tensor_of_kind in kinds.items():
        w = tensor()
        OPTIMIZERS[name]().update({"w": w}, {"w": tensor_of_kind})
        np.testing.assert_allclose(w, plain, err_msg=kind)
        assert OPTIMIZERS[name]().update({"w": tensor_of_kind}, {"w": tensor()})["w"] is tensor_of_kind
        np.testing.assert_allclose(tensor_of_kind.detach(), plain, err_msg=kind)
    if name == "Muon":
        return
    empty = OPTIMIZERS[name]().update({"w": torch.zeros(0, 3), "b": tensor()}, {"w": torch.zeros(0, 3), "b": tensor()})
    assert empty["w"].shape == (0, 3)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_slots_keep_no_graph_of_a_gradient(name: str) -> None:
    p, opt = torch.nn.Parameter(tensor()), OPTIMIZERS[name]()
    for _ in range(2):
        (g,) = torch.autograd.grad((p**3).sum(), [p], create_graph=True)
        assert g.requires_grad
        opt.update({"w": p}, {"w": g})
    assert not any(getattr(slot, "requires_grad", False) for slot in opt.slots["w"].values())


def test_a_transform_of_torch_around_the_pure_step() -> None:
    opt = optim.Adam(0.1)
    state = opt.init({"w": tensor()})

    def stepped(g: Any) -> Any:
        return opt.apply({"w": tensor()}, {"w": g}, state)[0]["w"]

    stacked = torch.stack([tensor(), -tensor()])
    found = torch.func.vmap(stepped)(stacked)
    torch.testing.assert_close(found[1], stepped(-tensor()))


# --- the count of changes ------------------------------------------------------------------------------------------------


def parameter() -> Any:
    return torch.nn.Parameter(tensor())


def graph_is_refused(change: Callable[[], Any], p: Any) -> None:
    """Records a graph that needs ``p`` as it is, changes it, and expects PyTorch to see that."""
    loss = (p * p).sum()
    before = p.detach().clone()
    change()
    assert not torch.equal(p.detach(), before), "nothing was changed"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_graph_from_before_a_step_is_refused(name: str) -> None:
    opt, p = OPTIMIZERS[name](), parameter()
    for _ in range(3):
        graph_is_refused(lambda: opt.update({"w": p}, {"w": tensor()}), p)


@pytest.mark.parametrize("layout", ["transposed", "view", "half", "tied", "detached"])
def test_a_graph_from_before_a_step_on_any_layout(layout: str) -> None:
    p = {
        "transposed": lambda: torch.nn.Parameter(tensor().T.clone().T),
        "view": lambda: torch.nn.Parameter(torch.zeros(4, 6, dtype=torch.float64)[:2, ::2]),
        "half": lambda: torch.nn.Parameter(tensor().to(torch.bfloat16)),
    }.get(layout, parameter)()
    g = torch.ones_like(p.detach())
    opt, given = optim.Adam(0.1), p.detach() if layout == "detached" else p
    model, grads = ({"w": given, "v": given}, {"w": g, "v": g}) if layout == "tied" else ({"w": given}, {"w": g})
    graph_is_refused(lambda: opt.update(model, grads), p)


def test_a_graph_from_before_a_step_of_rows() -> None:
    for sparse in ("dense", "lazy", "catch_up"):
        p, opt = parameter(), optim.Adam(0.1, sparse=sparse)
        rows = ox.SparseRows(torch.tensor([1]), tensor([[1.0, 2.0, 3.0]]), (2, 3))
        graph_is_refused(lambda p=p, opt=opt, rows=rows: opt.update({"w": p}, {"w": rows}), p)


def test_a_graph_from_before_averages_are_swapped() -> None:
    p, opt = parameter(), optim.chain(optim.SGD(1.0), optim.EMA(decay=0.5))
    for _ in range(2):
        opt.update({"w": p}, {"w": tensor()})
    graph_is_refused(lambda: opt.swap_in({"w": p}), p)
    graph_is_refused(lambda: opt.swap_out({"w": p}), p)


def test_a_graph_from_before_minimize() -> None:
    def loss(model: Any) -> Any:
        return xp.sum((model["w"] - 1.0) ** 2)

    for opt in (optim.LBFGS(), optim.SAM(optim.SGD(0.1)), optim.SGD(0.1)):
        p = parameter()
        graph_is_refused(lambda p=p, opt=opt: opt.minimize(loss, {"w": p}), p)


def test_gradients_that_are_left_zero_are_counted() -> None:
    for name in ("Adam", "Muon"):
        g, p = parameter(), tensor()
        graph_is_refused(
            lambda g=g, p=p, name=name: OPTIMIZERS[name](zero_gradients=True).update({"w": p}, {"w": g.detach()}), g
        )


def test_copies_in_another_dtype_are_counted() -> None:
    opt, model = optim.chain(optim.SGD(1.0), optim.Copy("float32")), {"w": tensor()}
    opt.update(model, {"w": tensor()})
    copy = opt.copied_parameters()["w"]
    x = torch.ones(2, 3, requires_grad=True)
    loss = (x * copy).sum()
    opt.update(model, {"w": tensor()})
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_what_is_not_changed_is_not_counted() -> None:
    p, frozen, g = parameter(), parameter(), tensor()
    opt = optim.SGD(0.1, groups={"frozen": None}, nonfinite="skip")
    opt.update({"w": p, "frozen": frozen}, {"w": g, "frozen": tensor()})
    assert (frozen._version, g._version) == (0, 0) and p._version == 1
    opt.update({"w": p, "frozen": frozen}, {"w": tensor() * np.nan, "frozen": tensor()})
    assert opt.skipped == 1 and p._version == 1, "a step that was skipped writes nothing"
    with pytest.raises(ox.ShapeError):
        opt.update({"w": p, "frozen": frozen}, {"w": torch.ones(7, dtype=torch.float64), "frozen": tensor()})
    assert p._version == 1
    opt.apply({"w": p, "frozen": frozen}, {"w": tensor(), "frozen": tensor()}, opt.init({"w": p, "frozen": frozen}))
    assert p._version == 1


def test_numpy_takes_the_place_of_a_tensor_and_gives_it_back() -> None:
    p, opt = parameter(), optim.Adam(0.1)
    opt.update({"w": p}, {"w": tensor()})
    model = opt.update({"w": p.detach().numpy().copy()}, {"w": tensor()})
    version = p._version
    opt.update(model, {"w": tensor()})
    assert p._version == version
    graph_is_refused(lambda: opt.update({"w": p}, {"w": np.array(VALUES)}), p)


def test_one_lazy_view_at_several_paths_of_a_tied_parameter_counts_once() -> None:
    w, g = tensor(), negative()
    optim.SGD(1.0).update({"a": w, "b": w}, {"a": g, "b": g})
    torch.testing.assert_close(w, tensor() - torch.tensor(VALUES, dtype=torch.float64))


# --- memory that changes between steps -----------------------------------------------------------------------------------


def give_storage(p: Any) -> None:
    with torch.no_grad():
        p.set_(torch.full((2, 3), 5.0, dtype=torch.float64))


def give_data(p: Any) -> None:
    p.data = torch.full((2, 3), 5.0, dtype=torch.float64)


def give_other_strides(p: Any) -> None:
    p.data = torch.full((3, 2), 5.0, dtype=torch.float64).T


def swap(p: Any) -> None:
    other = torch.nn.Parameter(torch.full((2, 3), 5.0, dtype=torch.float64))
    other.requires_grad_(p.requires_grad)
    torch.utils.swap_tensors(p, other if isinstance(p, torch.nn.Parameter) else other.detach())


@pytest.mark.parametrize("change", [give_storage, give_data, give_other_strides, swap])
@pytest.mark.parametrize("make", [tensor, parameter])
@pytest.mark.parametrize("which", ["parameter", "gradient"])
def test_other_memory_of_the_same_tensor_is_found(
    change: Callable[[Any], None], make: Callable[[], Any], which: str
) -> None:
    p, g, opt = make(), tensor(), optim.SGD(1.0)
    for _ in range(3):
        opt.update({"w": p}, {"w": g})
    change(p if which == "parameter" else g)
    before, given, version = p.detach().clone(), g.clone(), p._version
    for _ in range(2):
        opt.update({"w": p}, {"w": g})
    assert torch.equal(p.detach(), before - 2 * given) and torch.equal(g, given)
    assert p._version == version + 2


def test_a_tensor_that_loses_or_changes_its_memory_is_refused() -> None:
    for change, error in (
        (lambda t: t.untyped_storage().resize_(0), ox.ArrayMemoryError),
        (lambda t: t.resize_(3, 2), ox.ShapeError),
        (lambda t: setattr(t, "data", torch.ones(2, 3)), ox.DtypeError),
    ):
        for which in ("w", "g"):
            p, g, other, opt = tensor(), tensor(), tensor(), optim.Adam(0.1)
            for _ in range(2):
                opt.update({"a": other, "w": p}, {"a": tensor(), "w": g})
            before = other.clone()
            change({"w": p, "g": g}[which])
            counts = (other._version, p._version)
            with pytest.raises(error, match="^w: "):
                opt.update({"a": other, "w": p}, {"a": tensor(), "w": g})
            assert torch.equal(other, before) and (other._version, p._version) == counts and opt.step == 2


def test_views_of_complex_numbers_are_asked_for_their_sign_in_each_step() -> None:
    z = torch.complex(tensor(), tensor())
    p, opt = torch.zeros(2, 3, dtype=torch.float64), optim.SGD(1.0)
    for step in range(4):
        opt.update({"w": p}, {"w": z.imag if step % 2 else z.conj().imag})
    assert not p.any()
    p, one = torch.zeros(1, dtype=torch.float64), torch.complex(torch.ones(1).double(), torch.ones(1).double())
    opt = optim.SGD(1.0)
    for step in range(4):
        opt.update({"w": p}, {"w": one.imag if step % 2 else one.conj().imag})
    assert not p.any()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_number_that_becomes_a_lazy_view_of_its_own_memory(shape: tuple[int, ...]) -> None:
    z = torch.complex(torch.ones(shape), torch.ones(shape))
    p, g, opt = z.imag, torch.ones(shape), optim.SGD(1.0)
    for step in range(3):
        opt.update({"w": p}, {"w": g})
        assert opt.step == step + 1 and torch.equal(z.imag, torch.full(shape, -float(step)))
    p.data = z.conj().imag
    assert p.is_neg()
    with pytest.raises(ox.ArrayMemoryError, match="w: the parameter is a lazy view"):
        opt.update({"w": p}, {"w": g})
    assert torch.equal(z.imag, torch.full(shape, -2.0)) and opt.step == 3


@pytest.mark.parametrize("shape", [(1,), (3, 2)])
def test_gradients_that_are_new_lazy_views(shape: tuple[int, ...]) -> None:
    """A new object at the place of the last gradient, as of memory that was freed, may have its negative bit set."""
    p, memory, opt = torch.zeros(shape), torch.ones(shape), optim.SGD(1.0)
    for step in range(6):
        opt.update({"w": p}, {"w": memory.view(shape) if step % 2 else torch._neg_view(memory)})
    assert not p.any()


def test_gradients_that_are_new_in_each_step() -> None:
    p, q = torch.nn.Parameter(tensor()), torch.nn.Parameter(tensor())
    opt, theirs = optim.SGD(0.1, 0.9), torch.optim.SGD([q], 0.1, 0.9)
    for step in range(5):
        for each in (p, q):
            each.grad = None
            (each**2 * (step + 1)).sum().backward()
        opt.update({"w": p}, {"w": p.grad})
        theirs.step()
        torch.testing.assert_close(p, q)


def test_slots_that_were_handed_out_are_looked_at() -> None:
    model, opt = {"w": tensor()}, optim.SGD(1.0, 0.5)
    for _ in range(3):
        opt.update(model, {"w": tensor() * 0})
    m = opt.slots["w"]["m"]
    assert not m.any()
    version = m._version
    opt.update(model, {"w": tensor() * 0})
    assert m._version == version + 1, "its change is counted"
    with torch.no_grad():
        m.set_(tensor())
    before = model["w"].clone()
    opt.update(model, {"w": tensor() * 0})
    assert torch.equal(model["w"], before - 0.5 * tensor()) and torch.equal(m, 0.5 * tensor())


def test_tensors_and_arrays_of_numpy_in_one_model() -> None:
    model = {"a": tensor(), "b": np.array(VALUES), "c": parameter()}
    opt = optim.SGD(1.0)
    for grads in ({"a": tensor(), "b": np.array(VALUES), "c": tensor()}, dict.fromkeys("abc", np.array(VALUES))):
        before = {k: to_host(v.detach() if k == "c" else v).copy() for k, v in model.items()}
        for _ in range(2):
            opt.update(model, grads)
        for name, value in model.items():
            found = value.detach() if name == "c" else value
            np.testing.assert_array_equal(np.asarray(found), before[name] - 2 * np.array(VALUES))
    assert (model["a"]._version, model["c"]._version) == (4, 4)


def test_no_tensor_is_kept_by_the_steps() -> None:
    opt, model = optim.Adam(0.1), {"w": parameter()}
    for _ in range(3):
        g = tensor()
        opt.update(model, {"w": g})
    refs = [weakref.ref(model["w"]), weakref.ref(g)]
    storage = weakref.ref(model["w"].untyped_storage())
    del model, g
    assert [ref() for ref in refs] == [None, None] and storage() is None
