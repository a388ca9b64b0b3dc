"""K-FAC without the optimizer: factors, their decompositions on the workers, and preconditioned gradients."""

import copy
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import StateError, StructureError
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.kfac.kronecker import Factor, Inverse, Method, damped, invert, precondition
from oxigrad.distributed.kfac.layers import Layer, Statistics
from oxigrad.distributed.kfac.placement import Placement, shared
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.messages.message import Layout
from oxigrad.distributed.methods.means import mean_over_workers

_SIDES = ("inputs", "outputs")


@dataclasses.dataclass(frozen=True)
class Settings:
    """The hyperparameters of one call of a `Preconditioner`, and the workers that call it.

    See `oxigrad.distributed.KFAC`.
    """

    damping: float
    factor_decay: float
    kl_clip: float | None
    method: Method
    split_damping: bool
    inverse_update_steps: int
    fraction: float
    learning_rate: float
    scale: float
    communicator: Communicator
    timeout: float


@dataclasses.dataclass(frozen=True)
class _Decomposed:
    """The factors of a layer as they were decomposed, and what was added to their eigenvalues."""

    factors: tuple[Factor, Factor]
    added: tuple[float, float]


class Preconditioner:
    """The factors of the layers of a model, and those of their inverses that this worker holds.

    For layers whose inverses some workers do not hold, every worker keeps the factors as they were decomposed, from
    which the same inverses are computed again after the loss of the workers that held them, and after a load of the
    state of another worker.

    All workers call it with gradients that are averaged already, and get the same result. ``ignored`` counts the
    batches whose moments were not finite, on any worker: these leave the factors as they are.
    """

    placement: Placement
    count: int
    ignored: int

    def __init__(self) -> None:
        self.layers: dict[str, Layer] = {}
        self.factors: dict[str, tuple[Factor, Factor]] = {}
        self.inverses: dict[str, tuple[Inverse, Inverse]] = {}
        self.decomposed: dict[str, _Decomposed] = {}
        self.placement = Placement((), {}, {})
        self.count = 0
        self.ignored = 0
        self._membership: tuple[int, int, int] | None = None

    def __call__(
        self,
        gradients: Mapping[str, np.ndarray],
        statistics: Statistics | None,
        settings: Settings,
        *,
        count: int = 1,
    ) -> dict[str, np.ndarray]:
        """The preconditioned gradients of the parameters of layers, given the averaged gradients, by key path.

        ``count`` is 0 for a worker whose statistics are not used.
        """
        self._observe(statistics, settings, count)
        membership = settings.communicator.generation, settings.communicator.rank, settings.communicator.size
        is_due = self.count % settings.inverse_update_steps == 0
        paths = list(self.layers) if is_due else []
        if membership != self._membership:
            self._place(settings)
            paths = paths or self._missing(settings)
            self._membership = membership
        if paths:
            self._decompose(paths, settings, again=not is_due)
        self.count += 1
        return self._preconditioned(gradients, settings)

    def copied(self) -> "Preconditioner":
        """A copy, which shares no array that a step changes."""
        copied = copy.copy(self)
        copied.layers, copied.factors, copied.inverses = dict(self.layers), dict(self.factors), dict(self.inverses)
        copied.decomposed = dict(self.decomposed)
        return copied

    # --- factors ------------------------------------------------------------------------------------------------------

    def _observe(self, statistics: Statistics | None, settings: Settings, count: int) -> None:
        """Averages the moments of all workers, and adds them to the factors."""
        moments, layers = _moments(statistics), () if statistics is None else statistics.layers
        digest = bytes(8) if statistics is None else Layout(moments).digest
        agreed = self._agreed(digest, layers, settings, count)
        if agreed == bytes(8):
            return
        if digest != agreed:  # those of a worker that is late, whose state is that of the others
            layers = tuple(self.layers.values())
            moments = _moments(_no_moments(layers, self.factors))
            if Layout(moments).digest != agreed:
                raise StructureError("KFAC: this worker joined before the others had recorded layers: join again")
        averaged = mean_over_workers(moments, settings.communicator, count=count, timeout=settings.timeout)
        if not all(np.isfinite(array).all() for array in averaged.values()):
            self.ignored += 1
            return
        for layer in layers:
            if (before := self.layers.get(layer.path, layer)) != layer:
                raise StructureError(f"{layer.path}: found the layer {layer}, expected {before}, as before")
        for layer in layers:
            sizes = zip(_SIDES, (layer.inputs, layer.outputs), strict=True)
            a, g = (_symmetric(averaged[f"{layer.path}/{side}"], size) for side, size in sizes)
            if layer.path in self.layers:
                inputs, outputs = self.factors[layer.path]
                decay = settings.factor_decay
                self.factors[layer.path] = inputs.after(a, decay), outputs.after(g, decay)
            else:
                self.layers[layer.path], self.factors[layer.path] = layer, (Factor(a), Factor(g))
                self._membership = None  # a new layer to place, on all workers alike

    def _agreed(self, digest: bytes, layers: Sequence[Layer], settings: Settings, count: int) -> bytes:
        """The digest of the moments of all workers that are not late.

        Raises `StructureError`, on all, where they differ.
        """
        if settings.communicator.size == 1:
            return digest
        row = np.frombuffer(digest + bytes([count]), np.uint8).copy()
        rows = [each.tobytes() for each in settings.communicator.all_gather_v(row, timeout=settings.timeout)]
        present = [rank for rank, each in enumerate(rows) if each[8]]
        agreed = rows[present[0]][:8]
        if others := [rank for rank in present if rows[rank][:8] != (digest if count else agreed)]:
            recorded = ", ".join(layer.path for layer in layers) or "none"
            raise StructureError(
                f"KFAC: the workers {', '.join(map(str, others))} have recorded other layers than worker "
                f"{settings.communicator.rank}: expected the same on all; here {recorded}"
            )
        return agreed

    # --- decompositions -----------------------------------------------------------------------------------------------

    def _place(self, settings: Settings) -> None:
        sizes = {path: (layer.inputs, layer.outputs) for path, layer in self.layers.items()}
        self.placement = Placement.of(sizes, settings.communicator.size, settings.fraction)
        for path in self.layers:
            if settings.communicator.rank not in self.placement.group(path):
                self.inverses.pop(path, None)

    def _missing(self, settings: Settings) -> list[str]:
        """The layers whose inverses any worker of their group lacks."""
        placed, rank = self.placement, settings.communicator.rank
        lacking = [rank in placed.group(path) and path not in self.inverses for path in self.layers]
        flags = np.array(lacking, np.float32)
        settings.communicator.all_reduce([flags], op="max", timeout=settings.timeout)
        return [path for path, is_missing in zip(self.layers, flags, strict=True) if is_missing]

    def _to_decompose(self, path: str, settings: Settings, *, again: bool) -> _Decomposed:
        if again and path in self.decomposed:
            return self.decomposed[path]
        factors = self.factors[path]
        return _Decomposed(factors, damped(*factors, settings.damping, split=settings.split_damping))

    def _decompose(self, paths: Sequence[str], settings: Settings, *, again: bool) -> None:
        """Inverts the factors placed on this worker, and takes the other factors of its layers from other workers.

        With ``again``, they are the factors of the last decomposition, where these are known.
        """
        placed, rank = self.placement, settings.communicator.rank
        local: dict[str, np.ndarray] = {}
        specs: dict[str, GradientSpec] = {}
        owners: dict[str, int] = {}
        for path in paths:
            source = self._to_decompose(path, settings, again=again)
            self.decomposed.pop(path, None)
            if len(placed.group(path)) < settings.communicator.size:
                self.decomposed[path] = source
            for side, (factor, worker) in enumerate(zip(source.factors, placed.factors[path], strict=True)):
                name, size = f"{path}/{_SIDES[side]}", len(factor.value)
                specs[name] = GradientSpec((size + (settings.method == "eigen"), size), factor.value.dtype)
                if worker == rank:
                    local[name] = _packed(invert(factor, source.added[side], settings.method))
                if len(placed.group(path)) > 1:
                    owners[name] = worker
        inverses = local | shared(settings.communicator, local, specs, owners, settings.timeout)
        for path in paths:
            if rank in placed.group(path):
                a, g = (_unpacked(inverses[f"{path}/{side}"]) for side in _SIDES)
                self.inverses[path] = a, g

    # --- gradients ----------------------------------------------------------------------------------------------------

    def _preconditioned(self, gradients: Mapping[str, np.ndarray], settings: Settings) -> dict[str, np.ndarray]:
        placed, rank = self.placement, settings.communicator.rank
        matrices = {path: layer.matrix(gradients) for path, layer in self.layers.items()}
        local = {
            path: self._solved(path, matrix, settings)
            for path, matrix in matrices.items()
            if rank in placed.group(path)
        }
        specs = {path: GradientSpec(m.shape, self.factors[path][0].value.dtype) for path, m in matrices.items()}
        size = settings.communicator.size
        owners = {path: placed.sender(path) for path in matrices if len(placed.group(path)) < size}
        solved = shared(settings.communicator, local, specs, owners, settings.timeout) | local
        factor = self._clip(matrices, solved, settings)
        result: dict[str, np.ndarray] = {}
        for path, layer in self.layers.items():
            matrix = solved[path] if factor == 1.0 else solved[path] * solved[path].dtype.type(factor)
            result |= layer.arrays(matrix, gradients)
        return result

    def _solved(self, path: str, matrix: np.ndarray, settings: Settings) -> np.ndarray:
        inputs, outputs = self.inverses[path]
        added = damped(*self.factors[path], settings.damping, split=True) if settings.split_damping else None
        return np.ascontiguousarray(precondition(matrix, inputs, outputs, settings.damping, added))

    def _clip(self, matrices: Mapping[str, np.ndarray], solved: Mapping[str, np.ndarray], settings: Settings) -> float:
        """The factor of preconditioned gradients: ``min(1, sqrt(kl_clip / |sum V * gradient| / learning_rate^2))``."""
        if settings.kl_clip is None:
            return 1.0
        products = (np.vdot(matrices[path].astype(np.float64), solved[path].astype(np.float64)) for path in matrices)
        change = abs(math.fsum(map(float, products))) * (settings.learning_rate / settings.scale) ** 2
        return min(1.0, math.sqrt(settings.kl_clip / change)) if change > 0 else 1.0

    # --- state --------------------------------------------------------------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """The state besides the arrays, as plain data."""
        layers = [
            {**dataclasses.asdict(layer), "batches": self.factors[path][0].count, **self._added(path)}
            for path, layer in self.layers.items()
        ]
        return {"count": self.count, "ignored": self.ignored, "layers": layers}

    def _added(self, path: str) -> dict[str, Any]:
        return {"added": [*map(float, self.decomposed[path].added)]} if path in self.decomposed else {}

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """The factors of all layers, and the inverses that this worker holds, by key path and name.

        Where the factors have changed since they were decomposed, also those of the decomposition.
        """
        result: dict[str, dict[str, np.ndarray]] = {}
        for path, factors in self.factors.items():
            of_layer = result[path] = {}
            for side, factor in zip(_SIDES, factors, strict=True):
                of_layer[f"{side}-factor"] = factor.value
            for side, inverse in zip(_SIDES, self.inverses.get(path, ()), strict=False):
                of_layer[f"{side}-inverse"] = _packed(inverse)
            decomposed = self.decomposed.get(path)
            for side, factor, before in zip(_SIDES, factors, decomposed.factors if decomposed else (), strict=False):
                if before.value is not factor.value:
                    of_layer[f"{side}-decomposed"] = before.value
        return result

    @classmethod
    def restored(cls, plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> "Preconditioner":
        """The factors of the results of `plain` and `arrays`; inverses that are missing are computed in the next step.

        Raises `StateError` where an entry is missing or has another shape than expected.
        """
        preconditioner = cls()
        try:
            preconditioner.count, preconditioner.ignored = int(plain["count"]), int(plain["ignored"])
            entries = [_layer_entry(each) for each in plain["layers"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"its state is {dict(plain)!r}: expected count, ignored and layers") from error
        for layer, seen, added in entries:
            path, of_layer = layer.path, arrays.get(layer.path, {})
            sizes = dict(zip(_SIDES, (layer.inputs, layer.outputs), strict=True))
            a, g = (Factor(_entry(of_layer, path, f"{side}-factor", n, (0,)), seen) for side, n in sizes.items())
            preconditioner.layers[path], preconditioner.factors[path] = layer, (a, g)
            if all(f"{side}-inverse" in of_layer for side in _SIDES):
                packed = (_entry(of_layer, path, f"{side}-inverse", n, (0, 1)) for side, n in sizes.items())
                inputs, outputs = map(_unpacked, packed)
                preconditioner.inverses[path] = inputs, outputs
            if added is not None:
                a, g = (
                    Factor(_entry(of_layer, path, name, len(now.value), (0,))) if name in of_layer else now
                    for name, now in zip([f"{side}-decomposed" for side in _SIDES], (a, g), strict=True)
                )
                preconditioner.decomposed[path] = _Decomposed((a, g), added)
        return preconditioner


def _layer_entry(entry: Mapping[str, Any]) -> tuple[Layer, int, tuple[float, float] | None]:
    """A layer in a state, its number of batches, and what was added to eigenvalues of its decomposed factors."""
    layer = Layer.restored({name: value for name, value in entry.items() if name not in ("batches", "added")})
    if "added" not in entry:
        return layer, int(entry["batches"]), None
    a, g = entry["added"]
    return layer, int(entry["batches"]), (float(a), float(g))


def _entry(of_layer: Mapping[str, Any], path: str, name: str, size: int, more: tuple[int, ...]) -> np.ndarray:
    """A copy of an array of a state, checked to be square, or with as many further rows as ``more`` allows."""
    array = np.asarray(of_layer.get(name, ()))
    shape: tuple[int, ...] = array.shape
    if shape not in [(size + further, size) for further in more]:
        what = f"shape {shape}" if name in of_layer else "nothing"
        raise StateError(f"{path}: {name}: found {what}, expected shape {(size, size)}")
    # The dtype of an unpickled array is another object than NumPy's own, which the core recognizes.
    result = np.empty(array.shape, array.dtype.name)
    result[...] = array
    return result


def _moments(statistics: Statistics | None) -> dict[str, np.ndarray]:
    """The upper triangles of the moments, by key path and side."""
    if statistics is None:
        return {}
    pairs = zip(statistics.inputs, statistics.outputs, strict=True)
    return {
        f"{layer.path}/{side}": array[np.triu_indices(len(array))]
        for layer, pair in zip(statistics.layers, pairs, strict=True)
        for side, array in zip(_SIDES, pair, strict=True)
    }


def _no_moments(layers: Sequence[Layer], factors: Mapping[str, tuple[Factor, Factor]]) -> Statistics:
    """Zeros in place of moments."""
    zeros = [tuple(np.zeros_like(factor.value) for factor in factors[layer.path]) for layer in layers]
    return Statistics(tuple(layers), tuple(a for a, _ in zeros), tuple(g for _, g in zeros))


def _symmetric(triangle: np.ndarray, size: int) -> np.ndarray:
    """The symmetric matrix with this upper triangle."""
    matrix = np.empty((size, size), triangle.dtype)
    rows, columns = np.triu_indices(size)
    matrix[rows, columns] = triangle
    matrix[columns, rows] = triangle
    return matrix


def _packed(inverse: Inverse) -> np.ndarray:
    """An inverse as one array: with eigenvalues, these are its first row."""
    if inverse.eigenvalues is None:
        return inverse.matrix
    return np.concatenate([inverse.eigenvalues[None, :], inverse.matrix])


def _unpacked(array: np.ndarray) -> Inverse:
    rows, columns = array.shape
    return Inverse(array) if rows == columns else Inverse(array[1:], array[0])
