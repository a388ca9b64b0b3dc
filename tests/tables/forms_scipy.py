"""SciPy's forms: special functions, linear algebra, filters of images and signals, and distributions.

The calls are those of the tables of cases, and those written here. ``scipy`` means SciPy, or `oxigrad.xp` with the same names.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
import scipy.special
import scipy.stats

import cases_ndimage
import cases_scipy_linalg
import cases_signal
import cases_special
import cases_stats
from forms import Call, Form, Section, read
from oxigrad import xp

NO_RULE = "has no rule here"
STEP = "a step function: its derivative is zero wherever it exists"
# With SCIPY_ARRAY_API=1 the public names of ufuncs are functions, which call these for arrays of NumPy.
UFUNCS = scipy.special._ufuncs

_SPECIAL = """
scipy.special.digamma(p)
scipy.special.jn(2, p) | scipy.special.jn(0, v)
scipy.special.wofz(z)
"""
_SPECIAL_PLAIN = """
scipy.special.gammasgn(x)
"""
_SPECIAL_FUNCTIONS = """
scipy.special.comb(p + 3.0, p) | scipy.special.comb(5, p) | scipy.special.comb(p + 3.0, 2.0, repetition=True)
scipy.special.factorial(p) | scipy.special.factorial(c)
scipy.special.perm(p + 3.0, p) | scipy.special.perm(p + 5.0, 2)
scipy.special.lambertw(z) | scipy.special.lambertw(p) | scipy.special.lambertw(z, -1) | scipy.special.lambertw(z, k=1)
scipy.special.log_softmax(x) | scipy.special.log_softmax(x, axis=1)
scipy.special.logsumexp(x) | scipy.special.logsumexp(x, axis=1) | scipy.special.logsumexp(x, axis=(0, 1), keepdims=True) | scipy.special.logsumexp(x, 1) | scipy.special.logsumexp(x, b=p, axis=0) | scipy.special.logsumexp(v, b=q, axis=0, keepdims=True) | scipy.special.logsumexp(x, b=y, return_sign=True)[0]
scipy.special.multigammaln(p + 1.0, 2) | scipy.special.multigammaln(c + 2.0, 3)
scipy.special.polygamma(1, p) | scipy.special.polygamma(2, c)
scipy.special.softmax(x) | scipy.special.softmax(x, axis=1)
scipy.special.softplus(x)
scipy.special.zeta(3.0, p) | scipy.special.zeta(p + 1.5, q) | scipy.special.zeta(p + 1.5)
"""
_LINALG = """
linalg.cho_factor: np.triu(scipy.linalg.cho_factor(m @ m.T)[0]) | np.tril(scipy.linalg.cho_factor(m @ m.T, lower=True)[0])
scipy.linalg.expm(m / 4.0) | scipy.linalg.expm(n)
scipy.linalg.solve_banded((1, 1), x + 3.0 * K[:1] + 2.0, w) | scipy.linalg.solve_banded((1, 1), 0.2 * x + E[1:4, None], n)
scipy.linalg.solve_sylvester(m, m.T + 1.0, n)
scipy.linalg.solve_triangular(m, w) | scipy.linalg.solve_triangular(m, n, lower=True)
scipy.linalg.sqrtm(m @ m.T) | scipy.linalg.sqrtm(n + n.T)
"""
_NDIMAGE = """
scipy.ndimage.affine_transform(x, np.array([0.9, 1.1]), mode="mirror") | scipy.ndimage.affine_transform(x, np.array([[0.9, 0.2], [-0.1, 1.1]]), v[:2] * 0.1, output_shape=(2, 3), mode="mirror")
scipy.ndimage.fourier_ellipsoid(z, 3)
scipy.ndimage.fourier_gaussian(z, 1.3) | scipy.ndimage.fourier_gaussian(z, sigma=(0.5, 1.3))
scipy.ndimage.fourier_shift(z, (0.5, 1.5))
scipy.ndimage.fourier_uniform(z, 3)
scipy.ndimage.gaussian_gradient_magnitude(x, 0.9) | scipy.ndimage.gaussian_gradient_magnitude(x, sigma=0.9, mode="nearest")
scipy.ndimage.map_coordinates(x, 0.2 + f[:2]) | scipy.ndimage.map_coordinates(x, 0.2 + f[:2], order=1, mode="nearest", cval=1.5)
scipy.ndimage.mean(x) | scipy.ndimage.mean(x, J, 2) | scipy.ndimage.mean(x, labels=J, index=[1, 3])
scipy.ndimage.rotate(x, 31.7) | scipy.ndimage.rotate(x, 20.0 * c, reshape=False, mode="mirror")
scipy.ndimage.spline_filter(x) | scipy.ndimage.spline_filter(x, order=2, mode="reflect")
scipy.ndimage.spline_filter1d(x, 3, axis=0) | scipy.ndimage.spline_filter1d(x, order=2, mode="grid-wrap")
scipy.ndimage.sum(x) | scipy.ndimage.sum(x, J, 2) | scipy.ndimage.sum(x, labels=J, index=[1, 3])
scipy.ndimage.sum_labels(x) | scipy.ndimage.sum_labels(x, labels=J, index=[1, 3])
"""
_FFT = """
scipy.fft.dct(x) | scipy.fft.dct(x, 1, norm="forward") | scipy.fft.dct(x, type=3, axis=0, norm="ortho") | scipy.fft.dct(v, type=4, n=6) | scipy.fft.dct(z, 2, n=3, orthogonalize=False)
scipy.fft.dctn(x) | scipy.fft.dctn(t, type=3, axes=(0, 2), norm="ortho") | scipy.fft.dctn(x, s=(2, 5))
scipy.fft.dst(x) | scipy.fft.dst(x, 1, norm="forward") | scipy.fft.dst(x, type=3, axis=0, norm="ortho") | scipy.fft.dst(v, type=4, n=6) | scipy.fft.dst(z, 2, n=3, orthogonalize=False)
scipy.fft.dstn(x) | scipy.fft.dstn(t, type=3, axes=(0, 2), norm="ortho") | scipy.fft.dstn(x, s=(2, 5))
scipy.fft.fht(x, 0.1, 0.5) | scipy.fft.fht(v, dln=0.2, mu=1.0, offset=0.1, bias=0.3)
scipy.fft.hfft2(z) | scipy.fft.hfft2(z, s=(3, 6), norm="ortho")
scipy.fft.hfftn(z) | scipy.fft.hfftn(z, axes=(1, 0), norm="forward")
scipy.fft.idct(x) | scipy.fft.idct(x, 1, norm="ortho") | scipy.fft.idct(x, type=3, axis=0, norm="forward") | scipy.fft.idct(v, type=4, n=6)
scipy.fft.idctn(x) | scipy.fft.idctn(t, type=3, axes=(0, 2), norm="ortho") | scipy.fft.idctn(x, s=(2, 5))
scipy.fft.idst(x) | scipy.fft.idst(x, 1, norm="ortho") | scipy.fft.idst(x, type=3, axis=0, norm="forward") | scipy.fft.idst(v, type=4, n=6)
scipy.fft.idstn(x) | scipy.fft.idstn(t, type=3, axes=(0, 2), norm="ortho") | scipy.fft.idstn(x, s=(2, 5))
scipy.fft.ifht(x, 0.1, 0.5) | scipy.fft.ifht(v, dln=0.2, mu=1.0, offset=0.1, bias=0.3)
scipy.fft.ihfft2(x) | scipy.fft.ihfft2(x, s=(2, 4), norm="ortho")
scipy.fft.ihfftn(x) | scipy.fft.ihfftn(t, axes=(0, 2), norm="forward")
"""
_INTEGRATE = """
scipy.integrate.cumulative_simpson(x) | scipy.integrate.cumulative_simpson(t, axis=1) | scipy.integrate.cumulative_simpson(x, x=np.cumsum(p, axis=1), initial=c) | scipy.integrate.cumulative_simpson(r, dx=c, axis=0, initial=0.0)
scipy.integrate.cumulative_trapezoid(x) | scipy.integrate.cumulative_trapezoid(x, np.cumsum(h), initial=0) | scipy.integrate.cumulative_trapezoid(x, x=np.cumsum(p, axis=0), axis=0) | scipy.integrate.cumulative_trapezoid(v, dx=c)
scipy.integrate.odeint(lambda a, s: -c * a, w, E[3:] - 0.9, rtol=1e-12, atol=1e-12)
scipy.integrate.quad(lambda s: np.exp(-c * s * s), 0.0, c)[0] | scipy.integrate.quad(lambda s: np.exp(-c * s), 0.0, np.inf)[0] | scipy.integrate.quad(lambda s, a: a * s**2, 0.0, 1.0, args=(c,))[0]
scipy.integrate.simpson(x) | scipy.integrate.simpson(x, np.cumsum(h)) | scipy.integrate.simpson(r, dx=c, axis=0) | scipy.integrate.simpson(x, x=np.cumsum(p, axis=0), axis=0) | scipy.integrate.simpson(w[:2], dx=0.5) | scipy.integrate.simpson(w[:3], x=np.cumsum(h[:3]))
scipy.integrate.solve_ivp(lambda s, a: -c * a, (0.0, 1.0), w, t_eval=(0.5, 1.0), rtol=1e-10, atol=1e-10).y
scipy.integrate.trapezoid(x) | scipy.integrate.trapezoid(x, np.cumsum(h)) | scipy.integrate.trapezoid(t, x=np.cumsum(h[:3]), axis=1) | scipy.integrate.trapezoid(v, dx=c)
"""
_INTERPOLATE = """
scipy.interpolate.CubicSpline(np.cumsum(h), v)(np.cumsum(h)[1] + 0.1 * f) | scipy.interpolate.CubicSpline(np.cumsum(h), p.T, bc_type="natural")(c) | scipy.interpolate.CubicSpline(np.cumsum(h), m, axis=1, extrapolate=True)(c, 1)
scipy.interpolate.PchipInterpolator(np.cumsum(h), v)(np.cumsum(h)[1] + 0.1 * f) | scipy.interpolate.PchipInterpolator(np.cumsum(h), m, axis=1)(np.cumsum(h)[2] - 0.1 * c)
scipy.interpolate.RegularGridInterpolator((np.arange(3.0), np.arange(4.0)), x)(1.0 + f[:2, :2]) | scipy.interpolate.RegularGridInterpolator((np.arange(4.0), np.arange(4.0)), m, method="cubic")(1.0 + f[:2, :2])
scipy.interpolate.make_interp_spline(np.cumsum(h), v)(np.cumsum(h)[1] + 0.1 * f) | scipy.interpolate.make_interp_spline(np.cumsum(h), m, k=1, axis=1)(np.cumsum(h)[2] - 0.1 * c)
"""
_DISTANCES = (
    '"euclidean"',
    '"sqeuclidean", w=h',
    'metric="cityblock"',
    '"chebyshev"',
    '"minkowski", p=3.0, w=h',
    '"canberra"',
    '"braycurtis"',
    '"cosine"',
    '"correlation", w=h',
    '"seuclidean", V=h',
    '"mahalanobis", VI=m @ m.T',
)
_SPATIAL = f"""
{" | ".join(f"scipy.spatial.distance.cdist(p, q[:2], {metric})" for metric in _DISTANCES)} | scipy.spatial.distance.cdist(p, q, "jensenshannon")
{" | ".join(f"scipy.spatial.distance.pdist(p, {metric})" for metric in _DISTANCES)} | scipy.spatial.distance.pdist(p, "jensenshannon")
"""
_SIGNAL = """
scipy.signal.convolve(v, w) | scipy.signal.convolve(x, m[:2, :2], mode="same") | scipy.signal.convolve(x, m[:2, :2], mode="valid") | scipy.signal.convolve(z, z)
scipy.signal.convolve2d(x, m[:2, :2]) | scipy.signal.convolve2d(x, m[:2, :2], mode="same", boundary="wrap") | scipy.signal.convolve2d(x, m[:2, :2], "full", boundary="fill", fillvalue=1.5)
scipy.signal.correlate(v, w) | scipy.signal.correlate(x, m[:2, :2], mode="same") | scipy.signal.correlate(z, z, mode="valid")
scipy.signal.correlate2d(x, m[:2, :2]) | scipy.signal.correlate2d(x, m[:2, :2], mode="same", boundary="symm")
scipy.signal.fftconvolve(v, w) | scipy.signal.fftconvolve(x, m[:2, :2], mode="same") | scipy.signal.fftconvolve(x, x[:1], "full", axes=1)
scipy.signal.oaconvolve(v, w) | scipy.signal.oaconvolve(x, m[:2, :2], mode="valid") | scipy.signal.oaconvolve(x, x[:, :2], axes=(-1,))
"""
_STATS = """
stats.dirichlet: scipy.stats.dirichlet.logpdf(h / np.sum(h), v * v + 1.0) | scipy.stats.dirichlet.pdf(h / np.sum(h), v * v + 1.0)
stats.multivariate_normal: scipy.stats.multivariate_normal.logpdf(x, v, m @ m.T) | scipy.stats.multivariate_normal.pdf(x, mean=v, cov=m @ m.T) | scipy.stats.multivariate_normal.entropy(v, m @ m.T)
"""


def _of_cases(part: str, names: Iterable[str], call: Callable[[str], Call], written: str = "") -> tuple[Form, ...]:
    """Forms of a part from its cases, ``name`` or ``name-what``, and from text, sorted by name."""
    calls: dict[str, list[str | Call]] = {}
    for name in names:
        calls.setdefault(f"{part}.{name.split('-')[0]}", []).append(call(name))
    for form in read(written):
        calls.setdefault(form.name, []).extend(form.calls)
    return tuple(Form(name, tuple(of)) for name, of in sorted(calls.items()))


def _special(name: str) -> Call:
    args = cases_special.of_smooth(name, None)[1]
    f = lambda special, *args: cases_special.of_smooth(name, getattr(special, name.split("-")[0]))[0](*args)  # noqa: E731
    return Call("special", f, args)


def _undifferentiated() -> list[Form]:
    """Refusals of the ufuncs of SciPy that have no rule."""
    names = sorted(name for name, value in vars(UFUNCS).items() if isinstance(value, np.ufunc) and name[0] != "_")
    known = {*xp.special.__all__, "round"}  # a step, as np.round
    left = [name for name in names if name in scipy.special.__all__ and name not in known]
    calls = {name: f"scipy.special.{name}({', '.join('c' * getattr(UFUNCS, name).nin)})" for name in left}
    return [Form(f"special.{name}", (call,), NO_RULE, refused=True, order=0) for name, call in calls.items()]


_IMAGES = {**cases_ndimage.FILTERS, **cases_ndimage.SELECTIONS}


def _image(name: str) -> Call:
    return Call("ndimage", functools.partial(_IMAGES[name], mode="nearest"), (cases_ndimage.X,))


def _distributions() -> tuple[Form, ...]:
    rows = [*map(_continuous, cases_stats.CONTINUOUS), *map(_counted, cases_stats.COUNTED), *read(_STATS)]
    return tuple(sorted(rows, key=lambda form: form.name))


def _continuous(name: str) -> Form:
    shapes, z = cases_stats.CONTINUOUS[name]
    loc, scale = 0.3, 1.4
    calls: list[Call] = []
    is_slow = name in cases_stats.SLOW
    for function in cases_stats.CONTINUOUS_METHODS[: 3 if is_slow else None]:
        at = np.array([0.02, 0.3, 0.6, 0.97]) if function in ("ppf", "isf") else loc + scale * z
        if name not in cases_stats.ONLY_X or function in ("pdf", "logpdf"):
            calls.append(Call("stats", _method(name, function), (at, *shapes, loc, scale)))
        else:
            of_x = lambda stats, x, f: f(stats, x, *shapes, loc, scale)  # noqa: E731
            calls.append(Call("stats", functools.partial(of_x, f=_method(name, function)), (at,)))
    x = loc + scale * z
    calls.append(Call("stats", _named(name, "logpdf", "loc", "scale"), (x, *shapes, loc, scale)))
    calls.append(Call("stats", _named(name, "pdf", "scale"), (scale * z, *shapes, scale)))
    if name not in cases_stats.ONLY_X and not is_slow:
        calls.append(Call("stats", _named(name, "logsf", "loc"), (loc + z, *shapes, loc)))
        calls.append(Call("stats", _named(name, "ppf", "scale", "loc"), (np.array([0.3, 0.6]), *shapes, scale, loc)))
    reason = (
        "cdf, sf and their inverses: not differentiable by the shape parameters" if name in cases_stats.ONLY_X else ""
    )
    if name in cases_stats.ONCE:
        return Form(
            f"stats.{name}",
            tuple(calls),
            "cdf, sf and their inverses: differentiable once by the shape parameter",
            tolerance=1e-5,
            order=1,
        )
    return Form(f"stats.{name}", tuple(calls), reason, tolerance=1e-5)


def _counted(name: str) -> Form:
    *fixed, p = cases_stats.COUNTED[name]
    k = np.array([0.0, 1.0] if name == "bernoulli" else [1.0, 2.0, 4.0])
    functions = ["pmf", "logpmf", "cdf", *([] if name == "poisson" else ["sf"])]
    if name in cases_stats.WHOLE_PARAMETERS:
        of_numbers = lambda stats, f: f(stats, k, *fixed, p)  # noqa: E731
        plain = (Call("stats", functools.partial(of_numbers, f=_method(name, each)), ()) for each in functions)
        return Form(f"stats.{name}", tuple(plain), "its parameters are whole numbers", order=0)
    of_p = lambda stats, p, f: f(stats, k, *fixed, p)  # noqa: E731
    calls = tuple(Call("stats", functools.partial(of_p, f=_method(name, function)), (p,)) for function in functions)
    return Form(f"stats.{name}", calls)


def _named(name: str, function: str, *names: str) -> Callable[..., Any]:
    """A method of arguments of which the last are passed by keyword."""

    def of(stats: Any, *args: Any) -> Any:
        count = len(args) - len(names)
        return getattr(getattr(stats, name), function)(*args[:count], **dict(zip(names, args[count:], strict=True)))

    return of


def _method(name: str, function: str) -> Callable[..., Any]:
    return lambda stats, *args: getattr(getattr(stats, name), function)(*args)


_XP: Mapping[str, Any] = {"scipy": xp, "np": xp}
_SCIPY: Mapping[str, Any] = {"scipy": scipy, "np": np}
_UFUNCS = {name: value for name, value in vars(UFUNCS).items() if isinstance(value, np.ufunc)}
_OF_UFUNCS = {"scipy": types.SimpleNamespace(special=types.SimpleNamespace(**_UFUNCS, digamma=UFUNCS.psi))}
_LINALG_NAMES = [name for name in cases_scipy_linalg.CASES if name != "kron"]  # which NumPy has

SECTIONS: list[Section] = [
    Section(
        "Ufuncs of scipy.special",
        (
            *_of_cases("special", [name for name in cases_special.CASES if name != "zeta"], _special, _SPECIAL),
            *read(_SPECIAL_PLAIN, STEP),
            *_undifferentiated(),
        ),
        {"scipy.special": _OF_UFUNCS, "xp.special": _XP},
    ),
    Section("Further functions of scipy.special", tuple(read(_SPECIAL_FUNCTIONS)), {"xp.special": _XP}, _SCIPY),
    Section(
        "Functions of scipy.linalg",
        _of_cases("linalg", _LINALG_NAMES, lambda name: Call("linalg", *cases_scipy_linalg.CASES[name]), _LINALG),
        {"xp.linalg": _XP},
        _SCIPY,
    ),
    Section(
        "Functions of scipy.ndimage",
        _of_cases("ndimage", _IMAGES, _image, _NDIMAGE),
        {"xp.ndimage": _XP},
        _SCIPY,
    ),
    Section(
        "Functions of scipy.signal",
        _of_cases(
            "signal",
            cases_signal.LINEAR,
            lambda name: Call("signal", cases_signal.LINEAR[name], (cases_signal.X,)),
            _SIGNAL,
        ),
        {"xp.signal": _XP},
        _SCIPY,
    ),
    Section("Functions of scipy.fft", tuple(read(_FFT)), {"xp.fft": _XP}, _SCIPY),
    Section("Functions of scipy.integrate", tuple(read(_INTEGRATE)), {"xp.integrate": _XP}, _SCIPY),
    Section("Functions of scipy.interpolate", tuple(read(_INTERPOLATE)), {"xp.interpolate": _XP}, _SCIPY),
    Section("Functions of scipy.spatial", tuple(read(_SPATIAL)), {"xp.spatial": _XP}, _SCIPY),
    Section("Distributions of scipy.stats", _distributions(), {"xp.stats": _XP}, _SCIPY),
]
