"""NumPy's forms: functions, ufuncs and their methods, methods of arrays, keywords, and lists where NumPy takes lists."""

from __future__ import annotations

from forms import SPACES, Form, Section, read

STEP = "a step function: its derivative is zero wherever it exists"
TRUTH = "gives truth values"
WHOLE = "gives whole numbers"
BITS = "takes truth values or whole numbers"
SHAPES = "reads shapes and dtypes only"
MADE = "creates a new array"
ROUNDING = "moves its argument by a rounding error: refused, as in JAX and PyTorch"

# --- functions ----------------------------------------------------------------------------------------------------------

_REDUCTIONS = """
np.sum(x) | np.sum(x, axis=0) | np.sum(x, axis=(0, 1), keepdims=True) | np.sum(x, where=K) | np.sum(x, axis=1, initial=2.0, where=K) | np.sum(x, dtype=np.float64) | xp.sum([v, w]) | xp.sum([v, w], axis=0)
np.prod(x) | np.prod(x, axis=0) | np.prod(x, where=K) | np.prod(x, axis=1, initial=c, where=K) | np.prod(x, keepdims=True) | xp.prod([v, w], axis=1)
np.max(x) | np.max(x, axis=0) | np.max(x, axis=1, keepdims=True) | np.max(x, initial=-5.0, where=K) | np.max(x, axis=1, initial=c) | xp.max([v, w]) | np.max(c)
np.min(x) | np.min(x, axis=0) | np.min(x, axis=1, keepdims=True) | np.min(x, initial=5.0, where=K) | np.min(x, axis=1, initial=-c) | xp.min([v, w]) | np.min(c)
np.amax(x) | np.amax(x, axis=1) | np.amax(x, initial=0.0)
np.amin(x) | np.amin(x, axis=1) | np.amin(x, initial=0.0)
np.mean(x) | np.mean(x, axis=0) | np.mean(x, axis=1, keepdims=True) | np.mean(x, where=K) | np.mean(x, axis=0, where=K) | xp.mean([v, w]) | xp.mean([v, w], axis=0) | np.mean(x, dtype=np.float64)
np.std(x) | np.std(x, axis=0, ddof=1) | np.std(x, axis=1, keepdims=True) | np.std(x, where=K) | xp.std([v, w], axis=1) | np.std(x, axis=0, correction=1) | np.std(x, axis=1, mean=np.mean(x, axis=1, keepdims=True))
np.var(x) | np.var(x, axis=0, ddof=1) | np.var(x, axis=1, keepdims=True) | np.var(x, where=K) | xp.var([v, w], axis=1) | np.var(x, correction=1) | np.var(x, axis=1, mean=np.mean(x, axis=1, keepdims=True))
np.ptp(x) | np.ptp(x, axis=0) | np.ptp(x, axis=1, keepdims=True)
np.median(x) | np.median(x, axis=0) | np.median(x, axis=1, keepdims=True) | np.median(t, axis=(0, 2)) | xp.median([v, w])
np.average(x) | np.average(x, axis=0) | np.average(x, axis=1, weights=h) | np.average(x, weights=p) | np.average(x, axis=1, weights=h, returned=True) | np.average(t, axis=(0, 2), weights=p[:2], keepdims=True)
np.quantile(x, 0.3) | np.quantile(x, [0.1, 0.5], axis=0) | np.quantile(x, f[0, 0] * 0.9, axis=1) | np.quantile(x, 0.3, axis=1, keepdims=True) | np.quantile(x, 0.41, method="lower") | np.quantile(x, 0.4, method="weibull") | np.quantile(x, 0.4, method="median_unbiased") | np.quantile(x, 0.4, method="midpoint") | np.quantile(x, 0.35, weights=np.abs(K + 1.0), method="inverted_cdf") | np.quantile(t, 0.6, axis=(0, 2))
np.percentile(x, 30) | np.percentile(x, [10.0, 50.0], axis=0) | np.percentile(x, 90.0 * f[0, 0], axis=1) | np.percentile(x, 60.0, axis=1, keepdims=True, method="hazen") | np.percentile(x, 40.0, method="nearest")
np.nansum(np.where(Z, x, np.nan)) | np.nansum(np.where(Z, x, np.nan), axis=0) | np.nansum(np.where(Z, x, np.nan), axis=1, keepdims=True) | np.nansum(np.where(Z, x, np.nan), initial=1.0) | np.nansum(np.where(Z, x, np.nan), where=K)
np.nanprod(np.where(Z, x, np.nan)) | np.nanprod(np.where(Z, x, np.nan), axis=0) | np.nanprod(np.where(Z, x, np.nan), axis=1, keepdims=True)
np.nanmax(np.where(Z, x, np.nan)) | np.nanmax(np.where(Z, x, np.nan), axis=0) | np.nanmax(np.where(Z, x, np.nan), axis=1, keepdims=True)
np.nanmin(np.where(Z, x, np.nan)) | np.nanmin(np.where(Z, x, np.nan), axis=0) | np.nanmin(np.where(Z, x, np.nan), axis=1, keepdims=True)
np.nanmean(np.where(Z, x, np.nan)) | np.nanmean(np.where(Z, x, np.nan), axis=0) | np.nanmean(np.where(Z, x, np.nan), axis=1, keepdims=True) | np.nanmean(np.where(Z, x, np.nan), where=K)
np.nanstd(np.where(Z, x, np.nan)) | np.nanstd(np.where(Z, x, np.nan), axis=0) | np.nanstd(np.where(Z, x, np.nan), axis=1, ddof=1, keepdims=True)
np.nanvar(np.where(Z, x, np.nan), dtype=np.float64) | np.nanvar(np.where(Z, x, np.nan)) | np.nanvar(np.where(Z, x, np.nan), axis=0) | np.nanvar(np.where(Z, x, np.nan), axis=1, ddof=1, keepdims=True)
np.nanmedian(np.where(Z, x, np.nan)) | np.nanmedian(np.where(Z, x, np.nan), axis=0) | np.nanmedian(np.where(Z, x, np.nan), axis=1, keepdims=True)
np.nanquantile(np.where(Z, x, np.nan), 0.3) | np.nanquantile(np.where(Z, x, np.nan), [0.2, 0.7], axis=0) | np.nanquantile(np.where(Z, x, np.nan), 0.3, axis=1, keepdims=True) | np.nanquantile(np.where(Z, x, np.nan), f[0, 0] * 0.9, axis=1) | np.nanquantile(np.where(Z, x, np.nan), f[0] * 0.9, method="weibull")
np.nanpercentile(np.where(Z, x, np.nan), 30.0) | np.nanpercentile(np.where(Z, x, np.nan), [20.0, 70.0], axis=0) | np.nanpercentile(np.where(Z, x, np.nan), 100.0 * f[0, 0], axis=0, method="hazen")
np.cumsum(x) | np.cumsum(x, axis=0) | np.cumsum(x, 1, np.float64)
np.cumprod(x) | np.cumprod(x, axis=0) | np.cumprod(x, 1, np.float64)
np.cumulative_sum(v) | np.cumulative_sum(x, axis=0, include_initial=True) | np.cumulative_sum(x, axis=1, dtype=np.float64)
np.cumulative_prod(v) | np.cumulative_prod(x, axis=0, include_initial=True) | np.cumulative_prod(x, axis=1, dtype=np.float64)
np.nancumsum(np.where(Z, x, np.nan)) | np.nancumsum(np.where(Z, x, np.nan), axis=0)
np.nancumprod(np.where(Z, x, np.nan)) | np.nancumprod(np.where(Z, x, np.nan), axis=0)
np.cov(x) | np.cov(x, rowvar=False) | np.cov(v, w) | np.cov(x, y, ddof=0) | np.cov(x, bias=True) | np.cov(x, fweights=I + 1) | np.cov(x, aweights=W) | np.cov(v)
np.corrcoef(x) | np.corrcoef(x, rowvar=False) | np.corrcoef(v, w) | np.corrcoef(v)
np.trapezoid(x) | np.trapezoid(x, axis=0) | np.trapezoid(x, dx=0.5) | np.trapezoid(x, np.cumsum(h)) | np.trapezoid(x, x=np.cumsum(p, axis=1), axis=1) | np.trapezoid(v, dx=c)
np.histogram(x, bins=E, weights=y) | np.histogram(x, bins=3, range=(-2.0, 2.0), weights=y) | np.histogram(x, bins=4, density=True) | np.histogram(x, bins=4)
np.histogram2d(v, w, bins=2, range=((-2, 2), (-2, 2)), weights=h) | np.histogram2d(v, w, bins=[E, E], weights=h, density=True)
np.histogramdd(x[:, :2], bins=2, range=((-2, 2), (-2, 2)), weights=w[:3]) | np.histogramdd((v, w), bins=(E, E), weights=h)
np.histogram_bin_edges(x, bins=5) | np.histogram_bin_edges(x, bins=4, range=(-1.0, c)) | np.histogram_bin_edges(x, bins=E)
np.bincount(I, weights=w) | np.bincount(I, w, minlength=6)
np.interp(i[0], E, r[:, 0]) | np.interp(v, np.cumsum(h), w) | np.interp(v, np.cumsum(h), w, left=c, right=2.0) | np.interp(v, np.cumsum(h), w, period=4.0) | np.interp(c, E, r[:, 1])
"""

_MOVES = """
np.append(x, y) | np.append(x, y, axis=0) | np.append(v, 2.0)
np.insert(v, 1, c) | np.insert(x, 2, w[:3], axis=1) | np.insert(x, [0, 2], 5.0, axis=0) | np.insert(v, [1, 3], [c, 2.0])
np.delete(x, 1) | np.delete(x, 1, axis=1) | np.delete(x, [0, 2], axis=0) | np.delete(v, slice(0, 2))
np.concatenate([x, y]) | np.concatenate((x, y), axis=1) | np.concatenate([x, y], axis=None) | np.concatenate([x, y], dtype=np.float64, casting="same_kind")
np.stack([x, y]) | np.stack([x, y], axis=1) | np.stack((x, y), axis=-1, dtype=np.float64)
np.vstack([x, y]) | np.vstack((v, w)) | np.vstack([x, v], casting="same_kind") | np.vstack([v, w], dtype=np.float64)
np.hstack([x, y]) | np.hstack((v, w)) | np.hstack([v, c])
np.dstack([x, y]) | np.dstack((v, w))
np.column_stack([v, w]) | np.column_stack((x, w[:3]))
np.block([[x, y], [y, x]]) | np.block([v, w]) | np.block([[x], [v]]) | np.block([v, c])
r_: xp.r_[v, w] | xp.r_[v, 0.0, c] | xp.r_["0,2", v, w] | xp.r_["-1", x, y] | xp.r_[1:3, v]
c_: xp.c_[v, w] | xp.c_[x, y] | xp.c_[v, I]
ix_: x[np.ix_([0, 2], [1, 3])] | x[np.ix_([True, False, True], [1, 3])]
np.compress([True, False, True], x, axis=0) | np.compress([False, True], x) | np.compress(K[0], v)
np.extract(K, x) | np.extract(x > 0.0, x)
np.choose(I, [v, w, h]) | np.choose(I, x, mode="clip") | np.choose([3, 4, 5, 0], [v, w, h], mode="wrap") | np.choose(1, [v, w])
np.select([x > 0.5, x < -0.5], [x**2, y]) | np.select([x > 0.5, x < -0.5], [x**2, y], default=c) | np.select([K, x > 0.0], [x, v])
np.piecewise(x, [x < 0.0, x >= 0.0], [lambda e: -e, lambda e: e**2]) | np.piecewise(x, [x < 0.0], [1.0, np.exp]) | np.piecewise(v, v > 0.0, [lambda e, k: k * e, 2.0], 3.0) | np.piecewise(c, [c > 0.0], [lambda e: e**3])
np.where(K, x, y) | np.where(x > 0.0, x, 2.0) | np.where(K, v, c)
np.take(x, J) | np.take(x, I, axis=1) | np.take(x, [0, 20], mode="wrap") | np.take(x, [0, 20], mode="clip") | np.take(v, 2)
np.take_along_axis(x, J, axis=1) | np.take_along_axis(x, I, axis=None)
np.reshape(x, (4, 3)) | np.reshape(x, -1) | np.reshape(x, (2, -1), order="F") | xp.reshape([v, w], 8)
np.resize(x, (5, 4)) | np.resize(v, 10) | np.resize(x, (2, 2))
np.ravel(x) | np.ravel(x, order="F") | np.ravel(x.T, order="A") | np.ravel(x, order="K") | xp.ravel([v, w])
np.squeeze(x[None]) | np.squeeze(x[None, :, None], axis=0)
np.expand_dims(x, 1) | np.expand_dims(x, axis=(0, 2))
np.broadcast_to(v, (3, 4)) | np.broadcast_to(c, (2,))
np.broadcast_arrays(x, v, 2.0) | np.broadcast_arrays(v, x, c)
np.transpose(x) | np.transpose(t, (1, 0, 2)) | xp.transpose([v, w])
np.permute_dims(t, (1, 0, 2))
np.matrix_transpose(t)
np.moveaxis(t, 0, -1) | np.moveaxis(t, [0, 1], [-1, 0])
np.rollaxis(t, 2) | np.rollaxis(t, 1, 3)
np.swapaxes(t, 0, 2)
np.atleast_1d(c) | np.atleast_1d(x, v)
np.atleast_2d(v) | np.atleast_2d(x, v, c)
np.atleast_3d(v) | np.atleast_3d(x) | np.atleast_3d(x, v)
np.flip(x) | np.flip(x, 0) | np.flip(t, axis=(0, 2))
np.flipud(x)
np.fliplr(x)
np.rot90(x) | np.rot90(x, 3) | np.rot90(t, k=2, axes=(1, 2))
np.roll(x, 2) | np.roll(x, 1, axis=0) | np.roll(x, (1, -1), axis=(0, 1))
np.repeat(x, 2) | np.repeat(x, 3, axis=1) | np.repeat(v, I)
np.tile(x, 2) | np.tile(v, (2, 3)) | np.tile(c, 3)
np.pad(x, 1) | np.pad(x, ((1, 0), (0, 2)), constant_values=3.0) | np.pad(x, 1, mode="edge") | np.pad(x, 2, mode="reflect") | np.pad(x, 2, mode="symmetric") | np.pad(x, 6, mode="wrap") | np.pad(x, 1, constant_values=((1.0, 2.0), (3.0, 4.0))) | np.pad(v, 2, mode="linear_ramp", end_values=c) | np.pad(x, 1, mode="mean") | np.pad(x, 1, mode="maximum") | np.pad(v, 2, mode="minimum", stat_length=2) | np.pad(v, 1, mode="median") | np.pad(v, 3, mode="reflect", reflect_type="odd") | np.pad(x, 1, mode="empty")[1:-1, 1:-1] | np.pad(x, {0: 1, -1: (0, 2)})
np.split(x, 2, axis=1) | np.split(x, [1, 3], axis=1)
np.array_split(x, 3, axis=1) | np.array_split(v, [1, 2])
np.vsplit(x, 3)
np.hsplit(x, 2) | np.hsplit(v, [1])
np.dsplit(t, 2)
np.unstack(x) | np.unstack(x, axis=1)
np.diag(v) | np.diag(m) | np.diag(v, 1) | np.diag(x, k=-1)
np.diagflat(v) | np.diagflat(x, 1) | xp.diagflat([v, w], k=-1)
np.diagonal(x) | np.diagonal(t, offset=1, axis1=0, axis2=2)
np.trace(m) | np.trace(t, offset=1, axis1=1, axis2=2)
np.tril(x) | np.tril(x, -1) | np.tril(t, k=1)
np.triu(x) | np.triu(x, -1) | np.triu(t, k=1)
np.meshgrid(v, w) | np.meshgrid(v, w, indexing="ij") | np.meshgrid(v, w, sparse=True) | np.meshgrid(v, w, copy=False)
np.sort(x) | np.sort(x, axis=0) | np.sort(x, axis=None) | np.sort(x, kind="stable") | xp.sort([v, w]) | np.sort(x, stable=True)
np.sort_complex(z) | np.sort_complex(x)
np.partition(v, 2)[2] | np.partition(x, 1, axis=0)[1] | np.partition(v, [1, 2])[1:3] | np.partition(x, 3, axis=None)[3]
np.unique(x) | np.unique(x, return_index=True, return_inverse=True, return_counts=True) | np.unique(x, axis=0) | np.unique(np.append(v, v))
np.unique_all(x) | np.unique_all(v)
np.unique_counts(x)
np.unique_inverse(x)
np.unique_values(np.append(v, v))
np.union1d(v, w) | np.union1d(v, v[:2])
np.intersect1d(v, v[1:]) | np.intersect1d(v, v[::-1], assume_unique=True, return_indices=True)
np.setdiff1d(v, v[:2]) | np.setdiff1d(v, w, assume_unique=True)
np.setxor1d(v, v[:2]) | np.setxor1d(v, w, assume_unique=True)
np.trim_zeros(np.pad(v, 2)) | np.trim_zeros(np.pad(v, 2), "f") | np.trim_zeros(np.pad(v, 2), trim="b") | np.trim_zeros(np.pad(x, 1))
np.lib.stride_tricks.sliding_window_view(v, 2) | np.lib.stride_tricks.sliding_window_view(x, (2, 2)) | np.lib.stride_tricks.sliding_window_view(x, 2, axis=0)
np.apply_along_axis(np.sum, 0, x) | np.apply_along_axis(lambda e: e**2, 1, x) | np.apply_along_axis(lambda e, k: e[0] * e[-1] * k, 0, t, 2.0) | np.apply_along_axis(lambda e: np.outer(e, e), 1, x)
np.apply_over_axes(np.sum, t, [0, 2]) | np.apply_over_axes(np.mean, x, 0)
np.copy(x) | np.copy(x, order="F")
np.astype(x, np.float64) | np.astype(x, np.complex128) | np.astype(x, np.float64, copy=False)
np.array(x, like=x) | np.array([v, w], like=v) | np.array([c, 2.0, v[0]], like=v) | np.array([[v[0], 1.0], [2.0, v[1]]], like=v) | np.array(v, ndmin=2, like=v) | np.array(x, dtype=np.complex128, like=x)
np.asarray(x, like=x) | np.asarray([v, w], like=v)
np.asanyarray(x, like=x) | np.asanyarray([v, w], like=v)
np.ascontiguousarray(x.T, like=x) | np.ascontiguousarray(v, like=v)
np.asfortranarray(x, like=x)
np.require(x, requirements="C", like=x)
np.arange(c, 3.0, 0.5, like=x) | np.arange(1.0, 3.0, c, like=x) | np.arange(c, 0.1 - h[1], -0.3 * h[0], like=x) | np.arange(3, like=x)
np.full(3, c, like=x) | np.full((2, 4), v, like=v)
np.full_like(x, c) | np.full_like(x, v) | np.full_like(x, c, shape=(2, 2)) | np.full_like(x, c, order="F", subok=False) | np.full_like(x, c, dtype=np.float64)
np.linspace(v, w, 5) | np.linspace(c, 2.0, 3) | np.linspace(c, 2.0, num=4, endpoint=False) | np.linspace(c, 2.0, 4, retstep=True) | np.linspace(v, 2.0, 4, axis=1) | np.linspace(c, 2.0)
np.logspace(v, w, 5) | np.logspace(c, 2.0, num=4, base=3.0) | np.logspace(c, 1.0, 3, endpoint=False) | np.logspace(v, 2.0, 4, axis=1)
np.geomspace(h, 2.0, 5) | np.geomspace(c, 2.0, num=4) | np.geomspace(c, 3.0, 3, endpoint=False) | np.geomspace(h, 2.0, 4, axis=1)
np.real(z) | np.real(x)
np.imag(z)
np.real_if_close(x) | np.real_if_close(z) | np.real_if_close(x + 0j) | np.real_if_close(z[0, 0])
np.angle(z) | np.angle(x) | np.angle(z, deg=True)
np.nan_to_num(np.where(Z, x, np.nan)) | np.nan_to_num(np.where(Z, x, np.inf), nan=1.0, posinf=2.0, neginf=3.0) | np.nan_to_num(z + np.where(Z, 0.0, complex(0.0, np.inf)), posinf=2.0) | np.nan_to_num(np.where(Z, z, complex(np.nan, -np.inf)), neginf=-2.0)
np.clip(x, -0.5, 0.5) | np.clip(x, None, 0.5) | np.clip(x, v - 0.33, 2.0) | np.clip(x, a_min=-0.5, a_max=None) | np.clip(x, min=0.1)
np.diff(x) | np.diff(x, n=2, axis=0) | np.diff(v, prepend=0.0) | np.diff(x, prepend=y, append=c) | np.diff(x, axis=0, append=y[:1])
np.ediff1d(x) | np.ediff1d(v, to_end=c) | np.ediff1d(v, to_begin=[1.0, 2.0], to_end=w)
np.gradient(x) | np.gradient(x, axis=0) | np.gradient(v, 2.0) | np.gradient(x, 0.5, 2.0) | np.gradient(v, np.cumsum(h)) | np.gradient(x, axis=(0, 1)) | np.gradient(v, edge_order=2) | np.gradient(v, np.cumsum(h), edge_order=2) | np.gradient(v, c)
np.unwrap(3.0 * x) | np.unwrap(3.0 * x, axis=0) | np.unwrap(3.0 * v, discont=4.0) | np.unwrap(3.0 * v, period=c)
np.sinc(x) | np.sinc(z)
np.i0(x) | np.i0(10.0 * v)
np.convolve(v, w) | np.convolve(v, w[:2], "same") | np.convolve(v, w[:2], mode="valid")
np.correlate(v, w) | np.correlate(v, w[:2], "full") | np.correlate(v, w[:2], mode="same") | np.correlate(z[0], z[1, :2], mode="full")
np.vander(v) | np.vander(v, 3) | np.vander(v, N=3, increasing=True)
"""

_PRODUCTS = """
np.dot(x, w) | np.dot(v, w) | np.dot(x, m) | np.dot(c, x) | np.dot([v, w], m)
np.vdot(x, y) | np.vdot(z, z[::-1])
np.inner(x, y) | np.inner(v, w) | np.inner(x, w)
np.outer(v, w) | np.outer(x, v)
np.matmul(x, m) | np.matmul(x, w) | np.matmul(t, m)
np.matvec(x, w) | np.matvec(t, w)
np.vecmat(w, m) | np.vecmat(z[0], m)
np.vecdot(x, y) | np.vecdot(x, w) | np.vecdot(x, y, axis=0)
np.kron(v, w) | np.kron(x, m)
np.cross(r, 2.0 * r[::-1]) | np.cross(r, r[0], axisa=1, axisb=0, axisc=0) | np.cross(r.T, r.T[::-1], axis=0)
np.tensordot(t, m, 1) | np.tensordot(x, y, axes=2) | np.tensordot(t, x, axes=([1, 2], [0, 1])) | np.tensordot(t, v, (2, 0))
np.einsum("ij,j", x, w) | np.einsum("ij,jk->ik", x, m, optimize=True) | np.einsum("...j,j->...", t, w) | np.einsum(x, [0, 1], w, [1], [0]) | np.einsum(m, [0, 0]) | np.einsum("ii->i", m) | np.einsum("ij,jk", x, m, optimize="optimal") | np.einsum(t, [..., 0], w, [0], [...])
"""

_LINALG = """
np.linalg.cholesky(m @ m.T + 4.0 * np.eye(4)) | np.linalg.cholesky(m @ m.T + 4.0 * np.eye(4), upper=True)
np.linalg.cond(m) | np.linalg.cond(m, "fro") | np.linalg.cond(m, p=1) | np.linalg.cond(m, -2)
np.linalg.cross(r, r[::-1] * 2.0) | np.linalg.cross(r.T, r.T[::-1], axis=0)
np.linalg.det(m)
np.linalg.diagonal(t) | np.linalg.diagonal(m, offset=1)
linalg.eig: np.linalg.eig(m + np.diag([1.0, 3.0, 6.0, 9.0]))[0] + 0j
np.linalg.eigvals(m + np.diag([1.0, 3.0, 6.0, 9.0])) + 0j
linalg.eigh: np.linalg.eigh(m + m.T)[0] | np.abs(np.linalg.eigh(m + m.T)[1]) | np.linalg.eigh(m + m.T, UPLO="U").eigenvalues | np.linalg.eigh(m @ np.diag([1.0, 2.0, 3.0, 4.0]), "U") | np.linalg.eigh(m, UPLO="L")
np.linalg.eigvalsh(m + m.T) | np.linalg.eigvalsh(m @ np.diag([1.0, 2.0, 3.0, 4.0]), UPLO="U")
np.linalg.inv(m)
np.linalg.lstsq(r, w[:1] * r[:, 0], rcond=None)[0] | np.linalg.lstsq(r, np.stack([r[:, 0] ** 2, r[:, 1] ** 3], axis=1), rcond=None)[:2] | np.linalg.lstsq(m, w, rcond=1e-9)[0] | np.linalg.lstsq(r, r[:, 0] ** 2)
np.linalg.matmul(x, m)
np.linalg.matrix_norm(x) | np.linalg.matrix_norm(x, ord=1) | np.linalg.matrix_norm(x, ord="nuc", keepdims=True) | np.linalg.matrix_norm(x, ord=2)
np.linalg.matrix_power(m, 3) | np.linalg.matrix_power(m, -2) | np.linalg.matrix_power(m, 0) + m
np.linalg.matrix_transpose(t)
np.linalg.multi_dot([x, m, w]) | np.linalg.multi_dot([v, m, n, w]) | np.linalg.multi_dot([x, m, n])
np.linalg.norm(x) | np.linalg.norm(v, 1) | np.linalg.norm(v, ord=np.inf) | np.linalg.norm(x, axis=1) | np.linalg.norm(x, "nuc") | np.linalg.norm(t, axis=(1, 2), keepdims=True) | xp.linalg.norm([v, w]) | np.linalg.norm(v, 3) | np.linalg.norm(x, -2)
np.linalg.outer(v, w)
np.linalg.pinv(r) | np.linalg.pinv(m + m.T, hermitian=True) | np.linalg.pinv(r, rcond=1e-10) | np.linalg.pinv(r, rtol=1e-10) | np.linalg.pinv(r, rcond=0.6) | np.linalg.pinv(m, hermitian=True)
np.linalg.qr(r) | np.linalg.qr(r, mode="r") | np.linalg.qr(m, "complete")
np.linalg.slogdet(m)
np.linalg.solve(m, w) | np.linalg.solve(m, n)
linalg.svd: np.linalg.svd(r, compute_uv=False) | np.linalg.svd(r, full_matrices=False).S | np.linalg.svd(m, hermitian=True, compute_uv=False) | np.abs(np.linalg.svd(r, full_matrices=False)[2])
np.linalg.svdvals(r)
np.linalg.tensordot(t, m, axes=1)
np.linalg.tensorinv(np.reshape(m, (4, 2, 2)), ind=1) | np.linalg.tensorinv(np.reshape(m, (2, 2, 4)))
np.linalg.tensorsolve(np.reshape(m, (4, 2, 2)), w) | np.linalg.tensorsolve(np.reshape(m, (2, 4, 2)), w, axes=(0,)) | np.linalg.tensorsolve(np.reshape(m, (2, 2, 4)), w, axes=(0, 1)) | np.linalg.tensorsolve(np.reshape(m, (2, 2, 4)), w, axes=(1, 0))
np.linalg.trace(m) | np.linalg.trace(t, offset=1)
np.linalg.vecdot(x, y) | np.linalg.vecdot(x, y, axis=0)
np.linalg.vector_norm(x) | np.linalg.vector_norm(x, axis=1, ord=3) | np.linalg.vector_norm(x, keepdims=True)
"""

_FFT = """
np.fft.fft(x) | np.fft.fft(z, 6) | np.fft.fft(z, n=3, axis=0) | np.fft.fft(z, norm="ortho")
np.fft.ifft(x) | np.fft.ifft(z, 6) | np.fft.ifft(z, axis=0, norm="forward")
np.fft.rfft(x) | np.fft.rfft(x, 6) | np.fft.rfft(x, axis=0, norm="ortho")
np.fft.irfft(z) | np.fft.irfft(z, 5) | np.fft.irfft(z, axis=0)
np.fft.hfft(z) | np.fft.hfft(z, n=5)
np.fft.ihfft(x) | np.fft.ihfft(x, n=3)
np.fft.fft2(z) | np.fft.fft2(t, axes=(0, 1))
np.fft.ifft2(z) | np.fft.ifft2(z, s=(2, 3))
np.fft.rfft2(x) | np.fft.rfft2(t, norm="ortho")
np.fft.irfft2(z) | np.fft.irfft2(z, s=(3, 5))
np.fft.fftn(t) | np.fft.fftn(z, s=(2, 3), axes=(0, 1))
np.fft.ifftn(t) | np.fft.ifftn(t, axes=(0, 2))
np.fft.rfftn(t) | np.fft.rfftn(x, axes=(0, 1))
np.fft.irfftn(z) | np.fft.irfftn(z, s=(3, 5), axes=(0, 1))
np.fft.fftshift(x) | np.fft.fftshift(x, axes=1)
np.fft.ifftshift(x) | np.fft.ifftshift(x, axes=(0,))
"""

_POLYNOMIALS = """
np.poly(v) | np.poly(m @ m.T)
np.polyadd(v, w[:2]) | np.polyadd(v, [1.0, 2.0])
np.polysub(v, w[:2]) | np.polysub(v[:1], w)
np.polymul(v, w) | np.polymul(v, c)
np.polydiv(v, w[:2]) | np.polydiv(v[:2], w)
np.polyval(v, x) | np.polyval(v, c) | np.polyval([1.0, c], x)
np.polyder(v) | np.polyder(v, 2) | np.polyder(v, m=3)
np.polyint(v) | np.polyint(v, 2) | np.polyint(v, m=2, k=[1.0, c]) | np.polyint(v, k=c)
np.polyfit(r[:, 0], r[:, 1], 2) | np.polyfit(r[:, 0], r[:, 1:], deg=1) | np.polyfit(r[:, 0], r[:, 1], 1, w=E + 3.0) | np.polyfit(r[:, 0], r[:, 1], 2, cov=True) | np.polyfit(r[:, 0], r[:, 1], 2, cov="unscaled")
np.roots([1.0, -6.0 + c, 11.0, -6.0]) | np.roots(np.poly(h)) | np.roots([c, 1.0, 2.0])
"""

_EMATH = """
np.emath.sqrt(x) | np.emath.sqrt(z) | np.emath.sqrt(p)
np.emath.log(x) | np.emath.log(p)
np.emath.log2(x) | np.emath.log2(p)
np.emath.log10(x) | np.emath.log10(p)
np.emath.logn(2.0, x) | np.emath.logn(3.0, p) | np.emath.logn(p, q + 2.0)
np.emath.power(x, 2.5) | np.emath.power(p, q) | np.emath.power(x, -y)
np.emath.arccos(2.0 * x) | np.emath.arccos(i)
np.emath.arcsin(2.0 * x) | np.emath.arcsin(i)
np.emath.arctanh(2.0 * x) | np.emath.arctanh(i)
"""

_IN_PLACE = """
np.copyto(x, y); x | np.copyto(x, v, where=K); x | np.copyto(x, c, casting="same_kind"); x
np.put(x, [0, 5], v); x | np.put(x, [0, 25], w, mode="wrap"); x | np.put(x, I, c); x
np.place(x, K, v); x
np.putmask(x, K, y); x | np.putmask(x, x > 0.0, v); x
np.put_along_axis(x, J[:, :1], c, axis=1); x
np.fill_diagonal(m, v); m | np.fill_diagonal(x, c, wrap=True); x
np.add.at(v, I, w); v | np.add.at(x, (slice(None), I), y); x
np.subtract.at(v, I, w); v
np.multiply.at(v, I, w); v
np.divide.at(v, I, h); v
np.maximum.at(v, I, w); v
np.negative.at(v, I); v
out: np.add(x, y, out=x); x | np.exp(x, out=y); y | np.multiply(x, 2.0, out=x); x | np.cumsum(x, axis=0, out=y); y | np.sin(x, where=K, out=y); y
"""

DIFFERENTIABLE = _REDUCTIONS + _MOVES + _PRODUCTS + _LINALG + _FFT + _POLYNOMIALS + _EMATH + _IN_PLACE

_TRUTH = """
np.all(x) | np.all(x > 0.0, axis=0)
np.any(x) | np.any(x > 0.0, axis=0, keepdims=True)
np.allclose(x, y) | np.allclose(x, x, rtol=1e-3)
np.array_equal(x, y) | np.array_equal(x, x, equal_nan=True)
np.array_equiv(x, y)
np.isclose(x, y) | np.isclose(x, y, atol=1.0)
np.iscomplex(x)
np.isreal(x)
np.iscomplexobj(x)
np.isrealobj(x)
np.isin(x, v) | np.isin(x, v, invert=True)
np.isneginf(x)
np.isposinf(x)
"""
_WHOLE = """
np.argmax(x) | np.argmax(x, axis=0) | np.argmax(x, axis=1, keepdims=True)
np.argmin(x) | np.argmin(x, axis=0)
np.nanargmax(np.where(Z, x, np.nan)) | np.nanargmax(x, axis=0)
np.nanargmin(np.where(Z, x, np.nan)) | np.nanargmin(x, axis=0)
np.argsort(x) | np.argsort(x, axis=0) | np.argsort(x, kind="stable")
np.argpartition(x, 1) | np.argpartition(v, 2, axis=0)
np.argwhere(x > 0.0) | np.argwhere(x)
np.count_nonzero(x) | np.count_nonzero(x > 0.0, axis=0)
np.nonzero(x) | np.nonzero(x > 0.0)
np.flatnonzero(x)
np.searchsorted(np.sort(v), x) | np.searchsorted(E, v, side="right")
np.digitize(v, E) | np.digitize(v, E, right=True)
np.lexsort((v, w))
np.linalg.matrix_rank(m) | np.linalg.matrix_rank(r, tol=1e-8)
np.diag_indices_from(m)
np.tril_indices_from(m) | np.tril_indices_from(m, k=1)
np.triu_indices_from(m) | np.triu_indices_from(m, k=1)
np.ravel_multi_index((np.argmax(x, axis=0), I), (3, 4))
np.unravel_index(np.argmax(x), (3, 4))
"""
_SHAPES = """
np.can_cast(x, x.dtype)
np.common_type(x, v)
np.result_type(x, v) | np.result_type(x, np.complex64)
np.min_scalar_type(x)
np.ndim(x)
np.shape(x)
np.size(x) | np.size(x, 1)
np.shares_memory(x, y)
np.may_share_memory(x, y)
np.broadcast_shapes(x.shape, v.shape)
"""
_MADE = """
np.empty(0, like=x)
np.empty_like(x).shape
np.eye(3, like=x)
np.identity(3, like=x)
np.ones(3, like=x)
np.ones_like(x)
np.zeros(3, like=x)
np.zeros_like(x) | np.zeros_like(x, dtype=np.float32)
np.tri(3, like=x)
"""
_STEP = """
np.around(x) | np.around(x, 1) | np.around(x, decimals=1)
np.fix(x)
np.round(x) | np.round(x, decimals=1)
"""

# --- ufuncs -------------------------------------------------------------------------------------------------------------

_UFUNCS = """
np.absolute(x) | np.absolute(z) | np.absolute(v)
np.abs(x)
np.add(x, y) | np.add(x, 2.0) | np.add(x, v) | np.add([v, w], h)
np.arccos(i)
np.acos(i)
np.arccosh(p + 1.0)
np.acosh(p + 1.0)
np.arcsin(i)
np.asin(i)
np.arcsinh(x)
np.asinh(x)
np.arctan(x)
np.atan(x)
np.arctan2(x, y) | np.arctan2(x, 2.0)
np.atan2(x, y)
np.arctanh(i)
np.atanh(i)
np.cbrt(x)
np.conjugate(z) | np.conjugate(x)
np.conj(z)
np.copysign(x, y)
np.cos(x)
np.cosh(x)
np.deg2rad(x)
np.degrees(x)
np.divide(x, p) | np.divide(1.0, p)
np.divmod(x, p) | np.divmod(x, 0.3)
np.exp(x) | np.exp(z) | np.exp(x, dtype=np.float64)
np.exp2(x)
np.expm1(x)
np.fabs(x)
np.float_power(p, q) | np.float_power(x, 3)
np.fmax(x, y) | np.fmax(np.where(Z, x, np.nan), 0.2)
np.fmin(x, y) | np.fmin(np.where(Z, x, np.nan), 0.2)
np.fmod(x, p) | np.fmod(5.0 * x, 0.7)
np.frexp(3.0 * x)
np.heaviside(np.where(Z, x, 0.0), y) | np.heaviside(0.0, y)
np.hypot(x, y)
np.ldexp(x, I) | np.ldexp(x, 3) | np.ldexp(x * 1e-300, 2000) * 1e-302
np.log(p)
np.log10(p)
np.log1p(p)
np.log2(p)
np.logaddexp(x, y)
np.logaddexp2(x, y)
np.maximum(x, y) | np.maximum(x, 0.02)
np.minimum(x, y) | np.minimum(x, 0.02)
np.mod(x, p)
np.modf(5.0 * x)
np.multiply(x, y) | np.multiply(x, v)
np.negative(x)
np.positive(x)
np.power(p, q) | np.power(x, 3) | np.power(2.0, x)
np.pow(p, q)
np.rad2deg(x)
np.radians(x)
np.reciprocal(p)
np.remainder(5.0 * x, p)
np.sin(x)
np.sinh(x)
np.sqrt(p)
np.square(x)
np.subtract(x, y)
np.tan(i)
np.tanh(x)
np.true_divide(x, p)
"""
_UFUNCS_STEP = """
np.ceil(x)
np.floor(x)
np.floor_divide(x, 0.3)
np.rint(x)
np.sign(x)
np.spacing(x)
np.trunc(x)
"""
_UFUNCS_TRUTH = """
np.equal(x, y)
np.greater(x, y)
np.greater_equal(x, y)
np.isfinite(x)
np.isinf(x)
np.isnan(x)
np.less(x, y)
np.less_equal(x, y)
np.logical_and(x, y)
np.logical_not(x)
np.logical_or(x, y)
np.logical_xor(x, y)
np.not_equal(x, y)
np.signbit(x)
"""
_UFUNCS_BITS = """
np.bitwise_and(x > 0.0, K)
np.bitwise_count(np.argsort(x))
np.bitwise_or(x > 0.0, K)
np.bitwise_xor(x > 0.0, K)
np.gcd(np.argsort(x), 2)
np.invert(x > 0.0)
np.lcm(np.argsort(x), 2)
np.left_shift(np.argsort(x), 1)
np.right_shift(np.argsort(x), 1)
"""
_METHODS = """
np.add.outer(x, v) | np.add.outer(v, 2.0)
np.subtract.outer(x, v)
np.multiply.outer(x, v)
np.divide.outer(x, h) | np.true_divide.outer(v, h)
np.power.outer(p, v)
np.float_power.outer(p, v)
np.remainder.outer(5.0 * x, h)
np.fmod.outer(5.0 * x, h)
np.arctan2.outer(x, v)
np.heaviside.outer(np.where(Z, x, 0.0), h)
np.hypot.outer(x, v)
np.copysign.outer(x, v)
np.fmax.outer(x, v + 0.01)
np.fmin.outer(x, v + 0.01)
np.maximum.outer(x, v + 0.01)
np.minimum.outer(x, v + 0.01)
np.logaddexp.outer(x, v)
np.logaddexp2.outer(x, v)
np.ldexp.outer(x, I)
np.divmod.outer(x, h)
np.add.reduce(x) | np.add.reduce(x, axis=1, keepdims=True) | np.add.reduce(x, axis=None, initial=c, where=K)
np.multiply.reduce(x) | np.multiply.reduce(x, axis=1, initial=2.0)
np.maximum.reduce(x) | np.maximum.reduce(x, axis=None, initial=0.0)
np.minimum.reduce(x) | np.minimum.reduce(x, axis=1, keepdims=True)
np.logaddexp.reduce(x) | np.logaddexp.reduce(x, axis=1)
np.hypot.reduce(x)
np.subtract.reduce(x) | np.subtract.reduce(x, 1)
np.fmax.reduce(x) | np.fmin.reduce(x, axis=None)
np.add.accumulate(x) | np.add.accumulate(x, axis=1)
np.multiply.accumulate(x) | np.multiply.accumulate(x, 1)
np.maximum.accumulate(x) | np.minimum.accumulate(x, axis=1)
np.logaddexp.accumulate(x)
np.add.reduceat(v, [0, 2]) | np.add.reduceat(x, [0, 3, 1], axis=1) | np.multiply.reduceat(x, [0, 2])
"""
_METHODS_STEP = """
np.floor_divide.outer(x, h)
"""
_METHODS_TRUTH = """
np.equal.outer(x, v)
np.greater.outer(x, v)
np.greater_equal.outer(x, v)
np.less.outer(x, v)
np.less_equal.outer(x, v)
np.logical_and.outer(x, v)
np.logical_or.outer(x, v)
np.logical_xor.outer(x, v)
np.not_equal.outer(x, v)
np.logical_and.reduce(x) | np.logical_or.reduce(x > 0.0, axis=1)
"""
_METHODS_BITS = """
np.bitwise_and.outer(x > 0.0, K[0])
np.bitwise_or.outer(x > 0.0, K[0])
np.bitwise_xor.outer(x > 0.0, K[0])
"""
_REFUSED = """
np.nextafter(x, y)
np.nextafter.outer(x, v)
"""

# --- methods and operators of arrays --------------------------------------------------------------------------------------

_ARRAY = """
ndarray.astype: x.astype(np.float64) | x.astype(np.complex128)
ndarray.clip: x.clip(-0.5, 0.5) | x.clip(max=0.5)
ndarray.compress: x.compress([True, False, True], axis=0)
ndarray.conj: z.conj()
ndarray.conjugate: z.conjugate()
ndarray.copy: x.copy() | x.copy(order="C")
ndarray.cumprod: x.cumprod() | x.cumprod(axis=0)
ndarray.cumsum: x.cumsum() | x.cumsum(axis=0)
ndarray.diagonal: x.diagonal() | x.diagonal(offset=1)
ndarray.dot: x.dot(w)
ndarray.fill: x.fill(c); x
ndarray.flatten: x.flatten() | x.flatten("F")
ndarray.imag: z.imag
ndarray.max: x.max() | x.max(axis=0) | x.max(initial=0.0, where=K)
ndarray.mean: x.mean() | x.mean(axis=1, keepdims=True) | x.mean(where=K)
ndarray.min: x.min() | x.min(axis=0)
ndarray.mT: x.mT | t.mT
ndarray.partition: v.partition(2); v[2]
ndarray.prod: x.prod() | x.prod(axis=0)
ndarray.put: x.put([0, 5], c); x
ndarray.ravel: x.ravel() | x.ravel("F")
ndarray.real: z.real
ndarray.repeat: x.repeat(2) | x.repeat(2, axis=0)
ndarray.reshape: x.reshape(4, 3) | x.reshape((2, -1)) | x.reshape(6, 2, order="F")
ndarray.sort: x.sort(); x | x.sort(axis=0); x
ndarray.squeeze: x[None].squeeze() | x[None].squeeze(axis=0)
ndarray.std: x.std() | x.std(axis=0, ddof=1)
ndarray.sum: x.sum() | x.sum(axis=0) | x.sum(1, keepdims=True) | x.sum(where=K)
ndarray.swapaxes: x.swapaxes(0, 1)
ndarray.T: x.T | v.T | t.T
ndarray.take: x.take(I) | x.take([0, 1], axis=1)
ndarray.trace: m.trace()
ndarray.transpose: x.transpose() | t.transpose(1, 0, 2) | t.transpose((2, 0, 1))
ndarray.var: x.var() | x.var(axis=0, ddof=1)
ndarray.setitem: x[1] = v; x | x[K] = c; x | x += y; x | x[0] *= v; x
ndarray.getitem: x[1] | x[:, ::2] | x[K] | x[[0, 2], [1, 3]] | x[..., None] | x[I[:3]]
operators: x + y - 2.0 * x / p | p**q + p**2 + 2.0**x | x @ m | -x + +x | abs(x) | divmod(x, p) | 5.0 * x % p | x // 0.3 + x
"""
_ARRAY_PLAIN = """
ndarray.all: x.all() | (x > 0.0).all(axis=0)
ndarray.any: x.any()
ndarray.argmax: x.argmax() | x.argmax(axis=0)
ndarray.argmin: x.argmin(1)
ndarray.argpartition: x.argpartition(1)
ndarray.argsort: x.argsort() | x.argsort(axis=0)
ndarray.nonzero: x.nonzero()
ndarray.searchsorted: E.searchsorted(np.argsort(v)) | np.sort(v).searchsorted(0.3)
"""
_ARRAY_REFUSED = """
ndarray.item: x[0, 0].item()
ndarray.tolist: x.tolist()
"""

FORMS: tuple[Form, ...] = (
    *read(DIFFERENTIABLE),
    *read(_TRUTH, TRUTH),
    *read(_WHOLE, WHOLE),
    *read(_SHAPES, SHAPES),
    *read(_MADE, MADE),
    *read(_STEP, STEP),
)
UFUNCS: tuple[Form, ...] = (
    *read(_UFUNCS),
    *read(_UFUNCS_STEP, STEP),
    *read(_UFUNCS_TRUTH, TRUTH),
    *read(_UFUNCS_BITS, BITS),
    *read(_METHODS),
    *read(_METHODS_STEP, STEP),
    *read(_METHODS_TRUTH, TRUTH),
    *read(_METHODS_BITS, BITS),
    *read(_REFUSED, ROUNDING, refused=True),
)
METHODS: tuple[Form, ...] = (
    *read(_ARRAY),
    *read(_ARRAY_PLAIN, WHOLE),
    *read(_ARRAY_REFUSED, "a Python number would lose the derivative", refused=True),
)
SECTIONS: list[Section] = [
    Section("Functions of NumPy", FORMS),
    Section("Ufuncs and their methods", UFUNCS),
    Section("Methods and operators of arrays", METHODS, {"np.*": SPACES["np.*"]}),
]
