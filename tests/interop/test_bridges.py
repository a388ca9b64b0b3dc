"""Bridges: functions differentiated by oxigrad in PyTorch and JAX, and functions of PyTorch and JAX in oxigrad."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads

generator = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return generator.standard_normal(shape)


def mixed(x: Any, w: Any) -> Any:
    """A function of matrices with broadcasting, products, indices and reductions."""
    return xp.sin(x @ w) * xp.exp(-x[:, :1]) + xp.sum(w)


def norm(x: Any) -> Any:
    return xp.sum(xp.sin(x) ** 3)


def is_alive(ref: Any) -> bool:
    """Whether an object is; an assertion would keep it."""
    return ref() is not None


# --- functions that PyTorch differentiates by us -------------------------------------------------------------------------


class TestTorchFunction:
    """`oxigrad.interop.torch.function`."""

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        self.torch = pytest.importorskip("torch")
        self.function = pytest.importorskip("oxigrad.interop.torch").function

    def tensor(self, values: Any, **named: Any) -> Any:
        return self.torch.tensor(values, **{"dtype": self.torch.float64, "requires_grad": True, **named})

    @pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
    def test_derivatives_of_both_orders_and_modes(self) -> None:
        args, f = (self.tensor(normal(4, 3)), self.tensor(normal(3, 2))), self.function(mixed)
        assert self.torch.autograd.gradcheck(f, args, check_forward_ad=True)
        assert self.torch.autograd.gradgradcheck(f, args, check_fwd_over_rev=True)

    @pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
    def test_complex_tensors_are_conjugated_as_pytorch_does(self) -> None:
        z = self.tensor(normal(4) + 1j * normal(4), dtype=self.torch.complex128)
        f = self.function(lambda z: xp.exp(z) * xp.conj(z))
        assert self.torch.autograd.gradcheck(f, (z,), check_forward_ad=True)
        assert self.torch.autograd.gradgradcheck(f, (z,))

    def test_third_order(self) -> None:
        f, g = self.function(norm), lambda x: (x.sin() ** 3).sum()
        found = []
        for each in (f, g):
            x = self.tensor(0.3)
            y = each(x)
            for _ in range(3):
                (y,) = self.torch.autograd.grad(y, x, create_graph=True)
            found.append(y.item())
        assert found[0] == pytest.approx(found[1], rel=1e-12)

    def test_trees(self) -> None:
        def f(tree: Any, power: int, *, scale: Any) -> Any:
            return {"y": (scale[0] * tree["x"] ** power, "label"), "n": xp.argmax(tree["x"]), "untouched": tree["note"]}

        x, scale = self.tensor([1.0, 2.0]), self.tensor([3.0])
        found = self.function(f)({"x": x, "note": None}, 2, scale=[scale])
        assert found["y"][1] == "label" and found["untouched"] is None and not found["n"].requires_grad
        assert found["n"].item() == 1
        found["y"][0].sum().backward()
        assert x.grad.tolist() == [6.0, 12.0] and scale.grad.tolist() == [5.0]

    @pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "complex64"])
    def test_dtypes_are_kept(self, name: str) -> None:
        x = self.tensor([1.0, 2.0], dtype=getattr(self.torch, name))
        y = self.function(lambda x: x * x)(x)
        y.backward(self.torch.ones_like(y))
        assert y.dtype == x.grad.dtype == x.dtype and x.grad.real.tolist() == [2.0, 4.0]

    def test_what_needs_no_gradient_gets_none(self) -> None:
        x, w = self.tensor([1.0, 2.0]), self.tensor([3.0, 4.0], requires_grad=False)
        index = self.torch.tensor([1, 0])
        seen = []

        def f(x: Any, w: Any, index: Any) -> Any:
            seen.append([type(value) for value in (x, w, index)])
            return x[index] * w, x + w

        used, _ = self.function(f)(x, w, index)
        used.sum().backward()
        assert seen == [[ox.Variable, self.torch.Tensor, self.torch.Tensor]]
        assert x.grad.tolist() == [4.0, 3.0] and w.grad is None and index.grad is None

    def test_nothing_is_recorded_where_no_gradient_is_needed(self) -> None:
        seen = []
        f = self.function(lambda x: seen.append(type(x)) or x * 2.0)
        assert not f(self.tensor([1.0], requires_grad=False)).requires_grad
        with self.torch.no_grad():
            assert not f(self.tensor([1.0])).requires_grad
        with self.torch.inference_mode():
            f(self.tensor([1.0]))
        assert seen == [self.torch.Tensor] * 3

    def test_a_result_that_depends_on_no_argument(self) -> None:
        x = self.tensor([1.0, 2.0])
        a, b = self.function(lambda x: (x * 2.0, self.torch.ones(2)))(x)
        (a * b).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        assert self.function(lambda: 3.0)() == 3.0

    def test_a_result_that_is_an_argument_or_a_view_of_it(self) -> None:
        x = self.tensor([[1.0, 2.0], [3.0, 4.0]])
        same, turned = self.function(lambda x: (x, x.T))(x)
        assert same.data_ptr() != x.data_ptr() and turned.data_ptr() != x.data_ptr()
        (same[0, 1] + turned[1, 0]).backward()
        assert x.grad.tolist() == [[0.0, 2.0], [0.0, 0.0]]

    def test_modules_compose(self) -> None:
        layer = self.torch.nn.Linear(3, 1, dtype=self.torch.float64)
        x = self.torch.ones(2, 3, dtype=self.torch.float64)
        (self.function(lambda y: xp.special.softplus(y))(layer(x)).sum()).backward()
        ours, layer.weight.grad = layer.weight.grad, None
        self.torch.nn.functional.softplus(layer(x)).sum().backward()
        self.torch.testing.assert_close(ours, layer.weight.grad)

    def test_an_argument_changed_before_the_backward_pass_is_refused(self) -> None:
        x = self.tensor([1.0, 2.0])
        y = x * 1.0
        z = self.function(lambda x: xp.sum(x * x))(y)
        y.add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()

    def test_a_result_may_be_changed_in_place(self) -> None:
        x = self.tensor([1.0, 2.0])
        y = self.function(lambda x: xp.exp(x))(x)
        y += 1.0
        y.mul_(2.0).sum().backward()
        self.torch.testing.assert_close(x.grad, 2.0 * x.detach().exp())

    def test_a_graph_is_freed_by_its_backward_pass_unless_it_is_retained(self) -> None:
        x, f = self.tensor([1.0, 2.0]), self.function(lambda x: xp.sum(x * x))
        y = f(x)
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.tolist() == [4.0, 8.0]
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()

    def test_nothing_is_left_of_a_graph(self) -> None:
        kept = []

        def f(x: Any) -> Any:
            y = xp.exp(x)
            kept.append(weakref.ref(y.value if isinstance(y, ox.Variable) else y))
            return y * y

        x = self.tensor([1.0, 2.0])
        gc.collect()
        gc.disable()
        try:
            y = self.function(f)(x).sum()
            before = is_alive(kept[0])
            y.backward()  # frees the tape, while the graph still has its nodes
            after = is_alive(kept[0])
            y = self.function(f)(x).sum()
            del y
            assert (before, after, is_alive(kept[1])) == (True, False, False)
        finally:
            gc.enable()

    @pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
    def test_transforms_of_torch_func(self) -> None:
        func, f, g = self.torch.func, self.function(norm), lambda x: (x.sin() ** 3).sum()
        x, rows = self.tensor(normal(3), requires_grad=False), self.tensor(normal(5, 3), requires_grad=False)
        transforms = {
            "grad": lambda f: func.grad(f)(x),
            "vmap": lambda f: func.vmap(f)(rows),
            "vmap of a column": lambda f: func.vmap(f, in_dims=1)(rows),
            "vmap of grad": lambda f: func.vmap(func.grad(f))(rows),
            "grad of vmap": lambda f: func.grad(lambda rows: func.vmap(f)(rows).sum())(rows),
            "jvp": lambda f: func.jvp(f, (x,), (x,))[1],
            "hessian": lambda f: func.hessian(f)(x),
            "jacrev of jacrev": lambda f: func.jacrev(func.jacrev(f))(x),
            "jacfwd of jacfwd": lambda f: func.jacfwd(func.jacfwd(f))(x),
            "grad thrice": lambda f: func.grad(
                lambda x: func.grad(lambda x: func.grad(f)(x).sum())(x).sum(),
            )(x),
        }
        for name, transform in transforms.items():
            self.torch.testing.assert_close(transform(f), transform(g), msg=name)
        with pytest.raises(ox.ShapeError, match="vmap"):
            func.vmap(f)(rows[:0])

    @pytest.mark.filterwarnings("ignore")
    def test_torch_compile_breaks_the_graph_around_it(self) -> None:
        f = self.function(norm)

        def g(x: Any) -> Any:
            return 2.0 * f(x + 1.0)

        x = self.tensor([1.0, 2.0])
        expected = self.torch.autograd.grad(g(x), x)[0]
        found = self.torch.autograd.grad(self.torch.compile(g, backend="eager")(x), x)[0]
        self.torch.testing.assert_close(found, expected)

    def test_errors(self) -> None:
        with pytest.raises(TypeError, match="function: found 3"):
            self.function(3)
        x = self.tensor([1.0, 2.0])

        def fails(x: Any) -> Any:
            raise KeyError("of the function")

        with pytest.raises(KeyError, match="of the function"):
            self.function(fails)(x)


# --- functions that JAX differentiates by us -----------------------------------------------------------------------------


def branching(x: Any) -> Any:
    """A function that no tracer passes through."""
    return xp.sum(x**3) if x[0] > 0 else xp.sum(xp.sin(x))


class TestJaxFunction:
    """`oxigrad.interop.jax.function`."""

    @pytest.fixture(autouse=True)
    def _jax(self) -> Any:
        self.jax = pytest.importorskip("jax")
        self.function = pytest.importorskip("oxigrad.interop.jax").function
        self.np = self.jax.numpy
        with self.jax.enable_x64(True):
            yield

    def check(self, f: Any, *args: Any) -> None:
        from jax.test_util import check_grads as check

        check(f, args, order=2)

    def test_derivatives_of_both_orders_and_modes(self) -> None:
        args, f = (self.np.asarray(normal(4, 3)), self.np.asarray(normal(3, 2))), self.function(mixed)
        self.check(f, *args)
        self.check(self.jax.jit(f), *args)
        z = self.np.asarray(normal(4) + 1j * normal(4))
        self.check(self.function(lambda z: xp.exp(z) * xp.conj(z)), z)

    def test_transforms(self) -> None:
        jax, x = self.jax, self.np.asarray([1.0, 2.0, 3.0])
        f, rows = self.function(branching), self.np.stack([x, -x])
        g = lambda x: self.np.where(x[0] > 0, (x**3).sum(), self.np.sin(x).sum())  # noqa: E731
        transforms = {
            "value": lambda f: f(x),
            "grad": lambda f: jax.grad(f)(x),
            "jvp": lambda f: jax.jvp(f, (x,), (x,))[1],
            "hessian": lambda f: jax.hessian(f)(x),
            "jacrev of jacrev": lambda f: jax.jacrev(jax.jacrev(f))(x),
            "jacfwd of jacfwd": lambda f: jax.jacfwd(jax.jacfwd(f))(x),
            "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(f))(x),
            "grad thrice": lambda f: jax.grad(lambda x: jax.hessian(f)(x).sum())(x),
            "vmap": lambda f: jax.vmap(f)(rows),
            "vmap of a column": lambda f: jax.vmap(f, in_axes=1)(rows.T),
            "vmap of no rows": lambda f: jax.vmap(f)(rows[:0]),
            "vmap of grad": lambda f: jax.vmap(jax.grad(f))(rows),
            "grad of vmap": lambda f: jax.grad(lambda rows: jax.vmap(f)(rows).sum())(rows),
            "scan": lambda f: jax.grad(
                lambda x: jax.lax.scan(lambda c, _: (c * f(x), None), 1.0, None, length=3)[0],
            )(x),
            "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(x),
            "transpose": lambda f: jax.linear_transpose(lambda t: jax.jvp(f, (x,), (t,))[1], x)(1.0)[0],
            "linearize": lambda f: jax.linearize(f, x)[1](x),
        }
        for name, transform in transforms.items():
            expected = transform(g)
            np.testing.assert_allclose(transform(f), expected, rtol=1e-12, err_msg=name)
            np.testing.assert_allclose(jax.jit(lambda t=transform: t(f))(), expected, rtol=1e-12, err_msg=name)
            traced = jax.jit(lambda x, t=transform: t(lambda y: f(y + 0.0 * x[0])))(x)
            np.testing.assert_allclose(traced, expected, rtol=1e-12, err_msg=name)

    def test_trees(self) -> None:
        def f(tree: Any, power: int, *, scale: Any) -> Any:
            return {"y": (scale[0] * tree["x"] ** power, "label"), "n": xp.argmax(tree["x"])}

        x, scale = self.np.asarray([1.0, 2.0]), self.np.asarray([3.0])
        found = self.function(f)({"x": x}, 2, scale=[scale])
        assert found["y"][1] == "label" and int(found["n"]) == 1
        total = lambda tree, scale: self.function(f)(tree, 2, scale=scale)["y"][0].sum()  # noqa: E731
        for grad in (self.jax.grad(total, (0, 1)), self.jax.jit(self.jax.grad(total, (0, 1)))):
            tree, (of_scale,) = grad({"x": x}, [scale])
            assert tree["x"].tolist() == [6.0, 12.0] and of_scale.tolist() == [5.0]

    def test_integers_pass_and_have_no_gradient(self) -> None:
        f = self.function(lambda x, index: (x[index], index + 1))
        x, index = self.np.asarray([1.0, 2.0]), self.np.asarray([1])
        for grad in (self.jax.grad, lambda f: self.jax.jit(self.jax.grad(f))):
            assert grad(lambda x: f(x, index)[0].sum())(x).tolist() == [0.0, 1.0]
        assert self.jax.jit(f)(x, index)[1].tolist() == [2]
        assert self.jax.jvp(f, (x, index), (x, np.zeros(1, self.jax.dtypes.float0)))[1][0].tolist() == [2.0]

    @pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "complex64"])
    def test_dtypes_are_kept(self, name: str) -> None:
        x = self.np.asarray([1.0, 2.0], name)
        f = self.function(lambda x: x * x)
        for call in (f, self.jax.jit(f)):
            y, pull = self.jax.vjp(call, x)
            assert y.dtype == pull(y)[0].dtype == x.dtype
            np.testing.assert_allclose(pull(self.np.ones_like(y))[0], [2.0, 4.0])

    def test_single_precision_without_x64(self) -> None:
        with self.jax.enable_x64(False):
            x, f = self.np.asarray([1.0, 2.0]), self.function(lambda x: xp.sum(x * np.array([1.0, 2.0])))
            for grad in (self.jax.grad(f), self.jax.jit(self.jax.grad(f)), self.jax.jacfwd(f)):
                assert grad(x).dtype == np.float32 and grad(x).tolist() == [1.0, 2.0]

    def test_large_arrays(self) -> None:
        x = self.np.ones((600, 700))
        assert float(self.jax.jit(self.jax.grad(self.function(lambda x: xp.sum(x * x))))(x).sum()) == 840000.0

    def test_a_function_of_code_that_takes_no_tracers(self) -> None:
        f = self.function(ox.custom_vjp(np.sinh, lambda g, y, x: g * xp.cosh(x)))
        x = self.np.asarray([0.5, 1.0])
        np.testing.assert_allclose(self.jax.jit(f)(x), np.sinh(x))
        np.testing.assert_allclose(self.jax.jit(self.jax.vmap(self.jax.grad(f)))(x), np.cosh(x))

    def test_nothing_is_left_of_a_call(self) -> None:
        class Payload:
            pass

        def use(payload: Any) -> Any:
            f = self.function(lambda x: xp.sum(x * x) if payload else None)
            x = self.np.full(3, 2.0)
            f(x)
            self.jax.grad(f)(x)
            self.jax.jvp(f, (x,), (x,))
            self.jax.jit(self.jax.hessian(f))(x)
            return weakref.ref(x)

        payload = Payload()
        of_payload, of_array = weakref.ref(payload), use(payload)
        del payload
        gc.collect()
        assert not is_alive(of_array)
        self.jax.clear_caches()  # JAX keeps the last functions that it traced
        gc.collect()
        assert not is_alive(of_payload)

    def test_errors(self) -> None:
        with pytest.raises(TypeError, match="function: found 3"):
            self.function(3)
        key = self.jax.random.key(0)
        with pytest.raises(ox.DtypeError, match=r"argument 0, a\.k: found dtype key.*expected numbers.*key_data"):
            self.function(lambda tree: tree)({"a": {"k": key}})
        with pytest.raises(ox.DtypeError, match="argument k: found dtype key"):
            self.function(lambda k: k)(k=key)
        changing = self.function(lambda x: x[: 1 + int(np.asarray(x)[0])] if type(x) is np.ndarray else x[:1])
        with pytest.raises(Exception, match=r"the results have the shapes"):
            self.jax.block_until_ready(self.jax.jit(changing)(self.np.asarray([3.0, 1.0, 1.0, 1.0])))


# --- their functions in ours ---------------------------------------------------------------------------------------------


def torch_bridge() -> Any:
    torch, module = pytest.importorskip("torch"), pytest.importorskip("oxigrad.interop.torch")
    return module.from_torch, torch


def jax_bridge() -> Any:
    jax, module = pytest.importorskip("jax"), pytest.importorskip("oxigrad.interop.jax")
    return module.from_jax, jax.numpy


@pytest.fixture(params=[torch_bridge, jax_bridge], ids=["torch", "jax"])
def theirs(request: pytest.FixtureRequest) -> Any:
    """The bridge function, and the namespace that the bridged functions use."""
    return request.param()


class TestTheirs:
    """`from_torch` and `from_jax`."""

    def test_derivatives_of_all_orders_and_modes(self, theirs: Any) -> None:
        bridge, lib = theirs
        f = bridge(lambda tree, *, s: {"y": lib.sin(tree["x"]) @ tree["w"] * s, "z": tree["x"].sum()})
        check_grads(lambda tree, s: f(tree, s=s), ({"x": normal(3, 2), "w": normal(2, 2)}, 0.7), order=3)
        check_grads(bridge(lambda x: x**3), (2.0,), order=3)
        check_grads(bridge(lambda z: lib.exp(z) * z.conj()), (normal(3) + 1j * normal(3),), order=2)

    def test_second_derivatives(self, theirs: Any) -> None:
        bridge, lib = theirs
        f = bridge(lambda x: (lib.sin(x) ** 3).sum())
        x = normal(3)
        np.testing.assert_allclose(ox.hessian(f)(x), ox.hessian(norm)(x), rtol=1e-9)
        for mode in ("forward", "reverse"):
            np.testing.assert_allclose(ox.jacobian(ox.grad(f), mode=mode)(x), ox.hessian(norm)(x), rtol=1e-9)
        assert ox.grad(ox.grad(ox.grad(bridge(lambda x: x**3))))(2.0) == pytest.approx(6.0)

    def test_ours_around_theirs_around_ours(self, theirs: Any) -> None:
        bridge, lib = theirs
        module = pytest.importorskip(
            "oxigrad.interop.torch" if bridge.__name__ == "from_torch" else "oxigrad.interop.jax"
        )
        inner = module.function(lambda x: xp.exp(x) * x)
        check_grads(lambda x: xp.sum(bridge(lambda x: inner(lib.sin(x)))(x) ** 2), (normal(3),), order=2)

    def test_results_are_of_the_library_of_the_first_array(self, theirs: Any) -> None:
        bridge, lib = theirs
        f = bridge(lambda x, y: x * y)
        assert type(f(np.ones(2), 2.0)) is np.ndarray
        assert f(3.0, 2.0) == 6.0 and type(f(3.0, 2.0)) is float
        assert type(ox.grad(f)(3.0, 2.0)) is float
        given = lib.ones(2)
        assert type(f(given, 2.0)) is type(given)
        assert type(ox.vjp(f, given, given)[1](given)[0]) is type(given)
        strict = pytest.importorskip("array_api_strict")
        x = strict.asarray([1.0, 2.0])
        value, pull = ox.vjp(lambda x: f(x, x), x)
        assert type(value) is type(x) and type(pull(x)[0]) is type(x)
        assert np.asarray(pull(x)[0]).tolist() == [2.0, 8.0]

    @pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"])
    def test_dtypes_are_kept(self, theirs: Any, name: str) -> None:
        if name == "bfloat16":
            pytest.importorskip("ml_dtypes")
        bridge, _ = theirs
        x = np.array([1.0, 2.0]).astype(name)
        value, pull = ox.vjp(bridge(lambda x: x * x), x)
        assert value.dtype == x.dtype and pull(value)[0].dtype == x.dtype
        np.testing.assert_allclose(pull(np.ones(2, x.dtype))[0].astype(complex), [2.0, 4.0])

    @pytest.mark.parametrize(
        "array",
        [
            np.arange(6.0)[::-1],
            np.arange(6.0)[::2],
            np.arange(6.0).reshape(2, 3).T,
            np.arange(6.0).astype(">f8"),
            np.zeros((0, 2)),
            np.float64(2.0),
            np.array(2.0),
        ],
        ids=["reversed", "strided", "transposed", "big-endian", "empty", "scalar", "0-d"],
    )
    def test_memory_of_any_layout(self, theirs: Any, array: Any) -> None:
        bridge, _ = theirs
        if isinstance(array, np.ndarray):
            array = array.view()
            array.flags.writeable = False
        expected = ox.grad(lambda x: xp.sum(x * x))(array)
        np.testing.assert_allclose(ox.grad(lambda x: xp.sum(bridge(lambda x: x * x)(x)))(array), expected)

    def test_tensors_have_memory_of_their_own(self) -> None:
        bridge, _ = torch_bridge()
        x = np.ones(3)
        assert bridge(lambda t: t.mul_(2.0).sum())(x) == 6.0
        np.testing.assert_array_equal(x, np.ones(3))

    def test_results_are_arrays_of_their_own(self, theirs: Any) -> None:
        bridge, _ = theirs
        x = np.ones((2, 2))
        same, turned = bridge(lambda x: (x, x.T))(x)
        assert not np.shares_memory(same, x) and not np.shares_memory(turned, x)
        with ox.Tape() as tape:
            y = bridge(lambda x: x)(tape.watch(x))
        assert not np.shares_memory(y.value, x)

    def test_what_is_not_differentiated(self, theirs: Any) -> None:
        bridge, _ = theirs
        f = bridge(lambda x, index, note: (x[index].sum(), index + 1, note))
        gradient = ox.grad(lambda x: f(x, np.array([1]), "note")[0])(np.ones(3))
        assert gradient.tolist() == [0.0, 1.0, 0.0]
        _, following, note = f(np.ones(3), np.array([1]), "note")
        assert following.tolist() == [2] and note == "note"
        constant = bridge(lambda x: (x * 0.0).sum())
        assert ox.grad(constant)(np.ones(2)).tolist() == [0.0, 0.0]

    def test_an_optimizer_trains_through_it(self, theirs: Any) -> None:
        bridge, lib = theirs
        x, y = normal(20, 3), normal(20)
        loss = bridge(lambda model: ((x_(lib, x) @ model["w"] - x_(lib, y)) ** 2).mean())
        model, opt = {"w": np.zeros(3)}, ox.optim.Adam(0.05)
        before = loss(model)
        for _ in range(100):
            opt.minimize(loss, model)
        assert loss(model) < before

    def test_nothing_is_left_of_a_tape(self, theirs: Any) -> None:
        bridge, lib = theirs

        class Payload:
            pass

        payload = Payload()
        ref = weakref.ref(payload)
        ox.grad(bridge(lambda x, payload=payload: lib.exp(x).sum() if payload else x))(np.ones(3))
        ox.hessian(bridge(lambda x, payload=payload: lib.exp(x).sum() if payload else x))(np.ones(3))
        array = np.ones(100)
        of_array = weakref.ref(array)
        value, pull = ox.vjp(bridge(lambda x: lib.exp(x)), array)
        del array, pull, value, payload
        gc.collect()
        assert ref() is None and of_array() is None

    def test_errors(self, theirs: Any) -> None:
        bridge, _ = theirs
        with pytest.raises(TypeError, match="found 3, expected a function"):
            bridge(3)

        def leaking(x: Any) -> Any:
            return bridge(lambda y: {"y": y * 1, "leak": x})(x)["y"]

        with pytest.raises(ox.DerivativeError, match="uses a variable that is not among its arguments"):
            ox.grad(leaking)(1.0)


def x_(lib: Any, array: Any) -> Any:
    """A NumPy constant as an array of the other library."""
    return lib.asarray(array, dtype=lib.float64) if lib.__name__ == "torch" else array


def test_jax_computes_float64_without_x64() -> None:
    from_jax, lib = jax_bridge()
    jax = pytest.importorskip("jax")
    with jax.enable_x64(False):
        f = from_jax(lambda x: lib.exp(x).sum())
        gradient = ox.grad(f)(np.array([1.0, 2.0]))
        assert gradient.dtype == np.float64
        np.testing.assert_allclose(gradient, np.exp([1.0, 2.0]), rtol=1e-14)
        assert ox.grad(f)(np.array([1.0], np.float32)).dtype == np.float32


@pytest.mark.parametrize("library", ["torch", "jax", "autograd"])
def test_arguments_that_no_wanted_output_depends_on_get_no_cotangent(library: str) -> None:
    module = pytest.importorskip(f"oxigrad.interop.{library}")
    from_library = getattr(module, f"from_{library}")
    one = from_library(lambda unused, y: y * y)
    two = from_library(lambda first, y: (first * 2.0, y * y))
    none = from_library(lambda x, y: (x * 0.0 + 1.0, y))
    x = np.array([0.0, 1.0])  # where the derivative of the root is infinite
    for f in (
        lambda x: xp.sum(one(xp.sqrt(x), x)),
        lambda x: xp.sum(two(xp.sqrt(x), x)[1]),
        lambda x: xp.sum(ox.vmap(one)(xp.sqrt(x), x)),
        lambda x: xp.sum(none(xp.sqrt(x), x * x)[1]),
    ):
        assert ox.grad(f)(x).tolist() == [0.0, 2.0]
    with np.errstate(invalid="ignore"):  # in products that no result reads
        hessian = ox.hessian(lambda x: xp.sum(one(xp.sqrt(x), x)))(x)
    assert hessian.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert ox.grad(lambda x: xp.sum(one(x, x * 0.0 + 3.0)))(x).tolist() == [0.0, 0.0]
    # an argument that the function reads for some examples of a batch alone
    some = from_library(lambda switch, x, y: x * y if float(np.asarray(switch)) > 0 else y * y)
    switch, point = np.array([0.0, 1.0]), np.array([2.0, 3.0])
    gradient = ox.grad(lambda x: xp.sum(ox.vmap(lambda s, x: some(s, x, 2.0 * x))(switch, x)))
    assert gradient(point).tolist() == [16.0, 12.0]
    assert np.diag(
        ox.hessian(lambda x: xp.sum(ox.vmap(lambda s, x: some(s, x, 2.0 * x))(switch, x)))(point)
    ).tolist() == [8.0, 4.0]
