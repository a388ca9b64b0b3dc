"""Public names have a true ``__module__``, pickle, and have a signature; optimizers print their arguments."""

import contextlib
import functools
import importlib
import inspect
import operator
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim, xp
from oxigrad._names import parameter_kinds
from oxigrad.ops.protocols import undifferentiated
from oxigrad.optim.table.row import TABLE

# The public API: what `dir` of each module lists, but for optimizers. A name that is added or renamed is added or renamed here.
API: dict[types.ModuleType, str] = {
    ox: """AliasError ArrayMemoryError DerivativeError DtypeError InternalError KeyPathError NonFiniteError RuleError
        ShapeError SparseRows StaleRecordingError StateError StructureError Tape TapeEndedError TapeThreadError Variable __version__ checkpoint
        custom_vjp debug_nans define_jvp define_vjp elementwise_grad field get_num_threads ggnvp grad hessian hessian_diag hvp implicit jacfwd jacobian jacrev jvp
        linearize load_recording optim record schedules set_num_threads sparse_hessian sparse_jacobian state
        stop_gradient support testing tree value_and_grad vjp vmap xp""",
    optim: """AdaptiveGradientClip Cautious Centralize Chain ChainPart Changes ClipByGlobalNorm ClipByNorm ClipByValue
        Copy EMA GradientNoise Hyperball Interval LearningRateDropout Lookahead LossScale MARS Maximize NormalizeRows Optimizer
        Orthogonalize ParameterGroup Partition Quantized RateRange Regularize RuleOptimizer SAM SWA ScaleByShape ScheduleFree Slot Slots
        Transform WeightDecay chain define from_config muon_with_adamw partition range_test transform""",
    ox.schedules: """Schedule add clip constant cooldown cosine cosine_restarts cyclic exponential follow from_config
        inverse_power inverse_time join linear multiply multistep noam one_cycle one_minus_sqrt piecewise plateau polynomial
        rex rsqrt staircase step warmup warmup_cosine wsd""",
    ox.tree: """Key KeyPath Structure field flatten key_paths leaves map parameters path ravel register unflatten
        zeros_like""",
    ox.testing: """check_grads check_rule""",
    ox.extend: """Adapter COUNT Domain OPTIONS Parameters Recording Slice SlicedSteps Table Worker WrappingOptimizer adapter_of as_array
        config_of copied_like crc32c device_of driver dtype_name library number pack_state register_adapter to_host
        unpack_state""",
    distributed: """Aborted CommunicationError Communicator DataParallel DeepGradientCompression DropStale ElasticAverage Excluded
        Header KFAC LargeBatch Layout ModelAverage NotSupported Refused Shard Softsync Span SyncReplicas TimedOut Timeline WorkerDevice WorkerFilter WorkerLost
        WorkerReport WorkerReports Wrapper communicator current devices run shard""",
    ox.cuda: """CaptureError CompileError CompilerUnavailableError DeviceError DeviceLostError DeviceMemoryError
        DriverUnavailableError UnavailableWarning source why""",
    xp.special: """agm airy bdtr bdtrc bdtri bei beip ber berp beta betainc betaincc betainccinv betaincinv betaln binom boxcox
        boxcox1p cbrt chdtr chdtrc chdtri comb cosdg cosm1 cotdg dawsn digamma ellipe ellipeinc ellipk ellipkinc
        ellipkm1 entr erf erfc erfcinv erfcx erfi erfinv eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre
        eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre exp1 exp10 exp2 expi expit expm1 expn
        exprel factorial fdtr fdtrc fdtri fresnel gamma gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn
        gdtr gdtrc huber hyp0f1 hyp1f1 hyp2f1 hyperu i0 i0e i1 i1e inv_boxcox inv_boxcox1p iv ive j0 j1 jn jv jve k0
        k0e k1 k1e kei keip ker kerp kl_div kn kv kve lambertw log1p log_expit log_ndtr log_softmax loggamma logit
        logsumexp modstruve multigammaln nbdtr nbdtrc ndtr ndtri ndtri_exp owens_t pdtr pdtrc pdtri perm poch
        polygamma powm1 pseudo_huber psi radian rel_entr rgamma shichi sici sindg softmax softplus spence stdtr
        stdtrit struve tandg voigt_profile wofz wrightomega xlog1py xlogy y0 y1 yn yv yve zeta zetac""",
    xp.stats: """arcsine bernoulli beta betabinom betaprime binom boltzmann burr12 cauchy chi chi2 dgamma dirichlet dlaplace
        dweibull expon f fatiguelife fisk gamma genextreme genlogistic genpareto geom gompertz gumbel_l gumbel_r
        halfcauchy halflogistic halfnorm hypergeom hypsecant invgamma invgauss johnsonsb johnsonsu laplace levy
        logistic loglaplace lognorm logser loguniform lomax maxwell moyal multivariate_normal nakagami nbinom norm
        pareto planck poisson powerlaw randint rayleigh reciprocal rice skewnorm t triang truncexpon truncnorm uniform
        vonmises weibull_max weibull_min zipf""",
    xp.linalg: """EigResult EighResult LUResult QRResult SVDResult SlogdetResult block_diag cho_factor cho_solve
        cholesky circulant cond coshm cosm cross det diagonal eig eigh eigvals eigvalsh expm expm_frechet
        fractional_matrix_power hankel inv khatri_rao kron logm lstsq lu lu_factor lu_solve matmul matrix_norm
        matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv polar qr sinhm sinm slogdet solve
        solve_banded solve_continuous_lyapunov solve_discrete_lyapunov solve_sylvester solve_toeplitz
        solve_triangular solveh_banded sqrtm svd svdvals tensordot tensorinv tensorsolve toeplitz trace vecdot
        vector_norm""",
    xp.fft: """dct dctn dst dstn idct idctn idst idstn fft fft2 fftfreq fftn fftshift fht hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ifht ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq
        rfftn""",
    xp.integrate: """cumulative_simpson cumulative_trapezoid odeint quad simpson solve_ivp trapezoid""",
    xp.interpolate: "CubicSpline PchipInterpolator RegularGridInterpolator make_interp_spline",
    xp.polynomial: "chebyshev hermite hermite_e laguerre legendre polynomial",
    xp.ndimage: """affine_transform black_tophat convolve convolve1d correlate correlate1d fourier_ellipsoid fourier_gaussian
        fourier_shift fourier_uniform gaussian_filter gaussian_filter1d gaussian_gradient_magnitude
        gaussian_laplace grey_closing grey_dilation grey_erosion grey_opening laplace map_coordinates maximum_filter
        maximum_filter1d mean median_filter minimum_filter minimum_filter1d morphological_gradient morphological_laplace
        percentile_filter prewitt rank_filter rotate shift sobel spline_filter spline_filter1d sum sum_labels uniform_filter
        uniform_filter1d white_tophat zoom""",
    xp.spatial: "distance",
    xp.spatial.distance: "cdist pdist",
    xp.signal: """convolve convolve2d correlate correlate2d detrend fftconvolve filtfilt hilbert lfilter oaconvolve
        resample savgol_filter sosfilt upfirdn""",
}
# Modules that import another library: what `dir` lists, by name.
OF_LIBRARIES = {
    "oxigrad.torch": "HostMemory SparseAdam load_state_dict read_state state_dict",
    "oxigrad.optax": "State Transformation muon noisy_sgd optimistic_adam transformation",
    "oxigrad.interop.torch": "from_torch function",
    "oxigrad.interop.jax": "from_jax function",
    "oxigrad.interop.autograd": "from_autograd",
    "oxigrad.scipy": "curve_fit fft_backend least_squares minimize names root",
}
# The names of the optimizers, which docs/rules.md lists: the classes, and the functions of optax.
OPTIMIZERS: dict[str, list[str]] = {
    "oxigrad.optim": [*TABLE],
    "oxigrad.torch": [*TABLE],
    "oxigrad.optax": [name for row in TABLE.values() for name in row.optax],
}


def names_of(module: str, names: str) -> list[str]:
    """The public names of a module, sorted."""
    return sorted([*names.split(), *OPTIMIZERS.get(module, [])])


@pytest.mark.parametrize("module", [module for module in API if module.__name__.startswith("oxigrad.xp")])
def test_files_that_define_functions_are_no_names_of_a_namespace(module: types.ModuleType) -> None:
    modules = [
        name for name, value in vars(module).items() if getattr(value, "__name__", "") == f"{module.__name__}.{name}"
    ]
    assert [name for name in modules if name not in module.__all__] == []


@pytest.mark.parametrize("module", API, ids=lambda module: module.__name__)
def test_dir_is_the_public_api(module: types.ModuleType) -> None:
    names = names_of(module.__name__, API[module])
    assert sorted(dir(module)) == names
    assert sorted(module.__all__) == names
    assert all(hasattr(module, name) for name in names)


@pytest.mark.parametrize("name", OF_LIBRARIES)
def test_dir_of_a_module_for_another_library(name: str, library: Any) -> None:
    library(name.rpartition(".")[2])
    module, names = importlib.import_module(name), names_of(name, OF_LIBRARIES[name])
    assert sorted(dir(module)) == sorted(module.__all__) == names
    for each in names:
        value = getattr(module, each)
        assert isinstance(inspect.signature(value), inspect.Signature)
        assert again(value) is value
        assert value.__doc__


def test_an_import_loads_no_other_library() -> None:
    code = "import sys, oxigrad, oxigrad.interop; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {"torch", "jax", "optax", "scipy", "oxigrad.torch", "oxigrad.optax", "oxigrad.distributed"}
    assert not others & {*done.stdout.split()}


# Names of array_api_strict that are its own, and not the standard's.
OF_STRICT = {"ArrayAPIStrictFlags", "Device", "ModuleType"}


def test_dir_of_xp_is_the_standard_and_numpy() -> None:
    strict = pytest.importorskip("array_api_strict")
    standard = {
        name for name in dir(strict) if not (name.startswith("_") or name.endswith("_strict_flags"))
    } - OF_STRICT
    numpys = {name for name in np.__all__ if not isinstance(getattr(np, name), types.ModuleType)} - {"__version__"}
    dunders = {"__array_api_version__", "__array_namespace_info__"}
    parts = {
        "special",
        "stats",
        "linalg",
        "fft",
        "integrate",
        "interpolate",
        "ndimage",
        "polynomial",
        "signal",
        "spatial",
    }
    assert set(dir(xp)) == standard | numpys | dunders | parts
    assert set(xp.__all__) == set(dir(xp)) - dunders


@pytest.mark.parametrize("part", ["linalg", "fft"])
def test_an_extension_has_all_functions_of_the_standard(part: str) -> None:
    extension = getattr(pytest.importorskip("array_api_strict"), part)
    assert set(extension.__all__) - {"annotations"} <= set(dir(getattr(xp, part)))


SPACES = [
    ox,
    optim,
    ox.schedules,
    ox.tree,
    ox.testing,
    ox.extend,
    distributed,
    ox.cuda,
    ox.state,
    xp,
    xp.linalg,
    xp.fft,
    xp.special,
    xp.stats,
    xp.integrate,
    xp.interpolate,
    xp.ndimage,
    xp.signal,
    xp.spatial.distance,
]


def public() -> dict[str, Any]:
    """The public functions and classes, by qualified name."""
    found = {}
    for space in SPACES:
        for name in getattr(space, "__all__", None) or [name for name in vars(space) if not name.startswith("_")]:
            value = getattr(space, name)
            is_ours = str(getattr(value, "__module__", "")).partition(".")[0] == "oxigrad"
            is_distribution = space is xp.stats  # see test_a_distribution_pickles
            if callable(value) and not isinstance(value, types.ModuleType) and is_ours and not is_distribution:
                found[f"{space.__name__}.{name}"] = value
    return found


def again(value: Any) -> Any:
    """The value, from its pickle."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def test_public_names() -> None:
    """All in one test: an item for each name takes longer than its checks."""
    names = public()
    for name, value in names.items():
        if not (isinstance(value, type) and issubclass(value, BaseException)):
            assert isinstance(inspect.signature(value), inspect.Signature), name
        assert again(value) is value, name
        place = operator.attrgetter(value.__qualname__)(sys.modules[value.__module__])
        assert place is value, name
    assert len(names) > 400
    assert {"oxigrad.optim.Adam", "oxigrad.xp.sin", "oxigrad.xp.special.erf", "oxigrad.tree.KeyPath"} <= names.keys()
    assert optim.Adam.__module__ == optim.ClipByNorm.__module__ == optim.LBFGS.__module__ == "oxigrad.optim"


def test_signatures() -> None:
    assert str(inspect.signature(xp.sin)) == "(x, /)"
    assert str(inspect.signature(xp.add)) == "(x1, x2, /)"
    assert str(inspect.signature(optim.LossScale)).startswith("(initial: float = 65536.0")
    assert next(iter(inspect.signature(optim.SAM).parameters)) == "optimizer"
    assert [*inspect.signature(optim.SGD).parameters][:3] == ["learning_rate", "momentum", "nesterov"]


FUNCTIONS_OF_XP = [name for name in dir(xp) if inspect.isroutine(getattr(xp, name)) and not name.startswith("__")]


def test_functions_of_xp_pickle_and_have_a_signature() -> None:
    assert len(FUNCTIONS_OF_XP) > 300
    for name in FUNCTIONS_OF_XP:
        function = getattr(xp, name)
        assert again(function) is function, name
        assert getattr(sys.modules[function.__module__], function.__qualname__) is function, name
        assert isinstance(inspect.signature(function), inspect.Signature), name
        if name not in vars(xp):  # passed on
            described = undifferentiated.stated(name) or getattr(np, name)
            assert function.__doc__ == described.__doc__, name
            try:
                expected = inspect.signature(described)
            except ValueError:
                expected = inspect.signature(lambda *args, **named: None)
            assert inspect.signature(function).parameters.keys() == expected.parameters.keys(), name


def test_the_kinds_of_parameters_are_those_of_the_signature() -> None:
    class Callable:
        def __call__(self, a, /, b=1, *c, d, e=2, **f):
            raise NotImplementedError

    @functools.wraps(Callable.__call__)
    def wrapped(*args, **named):
        raise NotImplementedError

    bound = types.MethodType(wrapped, Callable())
    functions = [Callable(), Callable.__call__, Callable().__call__, wrapped, bound]
    functions += [functools.partial(wrapped, 1), lambda: 0]
    modules = [xp, xp.linalg, xp.fft, xp.special, xp.signal]
    functions += [getattr(module, name) for module in modules for name in module.__all__]
    stated = 0
    for function in functions:
        if inspect.isroutine(function) or isinstance(function, (Callable, functools.partial)):
            with contextlib.suppress(ValueError):  # a few of NumPy's functions have no signature
                expected = [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]
                assert list(parameter_kinds(function).items()) == expected, function
                stated += 1
    assert stated > 400


@pytest.mark.parametrize("name", xp.stats.__all__)
def test_a_distribution_pickles(name: str) -> None:
    distribution = getattr(xp.stats, name)
    assert again(distribution) is distribution
    assert all(
        inspect.signature(getattr(distribution, method))
        for method in dir(distribution)
        if not method.startswith("_")
        if callable(getattr(distribution, method))
    )


def test_a_function_of_the_standard_that_is_passed_on_is_one_object() -> None:
    assert again(xp.isdtype) is xp.isdtype
    assert xp.isdtype.__qualname__ == "isdtype"


# --- user-defined optimizers -------------------------------------------------------------------------------------------


def drift(xp: Any, p: Any, g: Any, *, rate: float = 0.5) -> Any:
    """Descent."""
    return p - rate * g


Drift = optim.define(drift)
Halve = optim.transform(lambda xp, p, g, *, share=0.5: share * g, "Halve")
MADE = {
    "one": Drift(0.25),
    "chain": optim.chain(Halve(0.1), Drift(0.25)),
    "partition": optim.partition({"w": Drift(0.25), "*": None}),
    "sam": optim.SAM(Drift(0.25)),
}


def test_user_classes_belong_to_their_module() -> None:
    assert Drift.__module__ == Halve.__module__ == __name__
    assert again(Drift) is Drift
    assert again(Halve) is Halve


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.one_in(4)
def test_a_pickle_brings_the_modules_of_its_classes(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "opt.pickle"
    file.write_bytes(pickle.dumps(MADE[kind]))
    code = "import pathlib, pickle, sys; print(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()))"
    path = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}", file],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == repr(MADE[kind]), done.stderr


def test_an_optimizer_that_no_module_has_pickles_by_name() -> None:
    local = optim.define(lambda xp, p, g, *, rate=0.5: p - rate * g, "OfNoModule")
    assert repr(again(local(0.25))) == "OfNoModule(rate=0.25)"


# --- repr --------------------------------------------------------------------------------------------------------------

OPTIONS = {
    "seed": 3,
    "accumulate": 2,
    "nonfinite": "raise",
    "zero_gradients": True,
    "slot_dtype": "float32",
    "master": True,
}


@pytest.mark.parametrize(
    "make",
    [
        optim.Adam,
        lambda **options: optim.chain(optim.ClipByValue(), optim.SGD(), **options),
        lambda **options: optim.partition({"*": optim.SGD()}, **options),
        lambda **options: optim.SAM(optim.SGD(), **options),
    ],
    ids=["one", "chain", "partition", "sam"],
)
def test_repr_shows_every_option_that_is_not_the_default(make: Any) -> None:
    plain = repr(make())
    for name, value in {**OPTIONS, "loss_scale": optim.LossScale(8.0), "rounding": "kahan", "sparse": "lazy"}.items():
        assert f", {name}={value!r}" in repr(make(**{name: value}))
        assert f"{name}=" not in plain


def test_repr_shows_groups_and_dtype() -> None:
    opt = optim.SGD(0.1, groups={"*.bias": {"weight_decay": 0.5}, "body.*": None}, dtype="float32")
    expected = "groups={'*.bias': {'weight_decay': 0.5}, 'body.*': None}, dtype='float32')"
    hyperparameters = (
        "learning_rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0, dampening=0.0, rate_before_momentum=False"
    )
    assert repr(opt) == f"SGD({hyperparameters}, {expected}"
    assert eval(repr(opt), vars(optim)).get_config() == opt.get_config()  # noqa: S307
    assert "<lambda>" in repr(optim.SGD(groups={lambda path, array: True: {}}))
    with np.printoptions(precision=1):
        assert repr(optim.SGD(lambda step: 0.1)).startswith("SGD(learning_rate=<function")


def test_an_import_loads_no_submodules_of_numpy_that_are_not_needed() -> None:
    code = "import sys, oxigrad; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy.random", "numpy.f2py", "numpy.testing", "numpy.polynomial", "numpy.ma"} & {*done.stdout.split()}


def test_the_import_leaves_out_what_derivatives_do_not_need() -> None:
    program = """
import sys, oxigrad as ox
LEFT_OUT = ("oxigrad.optim", "oxigrad.step", "oxigrad.cuda", "oxigrad.recording", "oxigrad.autodiff.sparse", "scipy")
LEFT_OUT += tuple(f"oxigrad.ops.{name}" for name in ("calculus", "ndimage", "numpy.forms", "signal", "spatial", "special", "stats"))
loaded = [name for name in sys.modules if name.startswith(LEFT_OUT)]
assert not loaded, loaded
assert ox.grad(lambda x: x * x)(1.0) == 2.0 and not [name for name in sys.modules if name.startswith("oxigrad.optim")]
assert ox.optim.SGD and ox.SparseRows and ox.state and ox.cuda and ox.testing and ox.schedules
assert all(hasattr(ox, name) for name in ox.__all__) and all(hasattr(ox.xp, name) for name in ox.xp.__all__)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_exceptions_say_what_causes_them() -> None:
    """Each class of exceptions of the public API has a docstring of its own: a sentence at least, not the name again."""
    found = {value for module in API for value in vars(module).values() if inspect.isclass(value)}
    found = {value for value in found if issubclass(value, BaseException) and value.__module__.startswith("oxigrad")}
    assert len(found) >= 27
    for value in found:
        text = inspect.cleandoc(vars(value).get("__doc__") or "")
        assert len(text.split()) >= 12 and text.endswith("."), f"{value.__name__}: {text!r}"


@pytest.mark.parametrize(
    "name", ["AxisError", "MatrixShapeError", "StaleRecordingError", "UnbatchedError", "UnknownNameError"]
)
def test_errors_of_python_have_the_name_of_the_package(name: str) -> None:
    """As in tracebacks; a pickle of the error finds the class by it."""
    kind = getattr(ox, name)
    assert f"{kind.__module__}.{kind.__qualname__}" == f"oxigrad.{name}"
    with pytest.raises(ox.ShapeError) as raised:
        xp.sum(np.ones(2), axis=3)
    assert type(pickle.loads(pickle.dumps(raised.value))) is type(raised.value)  # noqa: S301
