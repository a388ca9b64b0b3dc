"""The problems of `benches/gradbench` at small sizes: values and derivatives from formulas and programs that share nothing with them."""

import importlib
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
import sizes
from gradbench import PROBLEMS, ROWS, ba, descent, det, hello, ht, kmeans, llsq, lse, ode, particle, saddle
from measure import Settings
from oxigrad import xp
from rows.gradients import mixture, recurrent

Function = Callable[..., Any]


def differences(f: Function, args: Sequence[Any], step: float = 1e-5) -> list[np.ndarray]:
    """The gradient of a scalar function of arrays by central differences of order four, a number at a time."""
    found = []
    for at, arg in enumerate(args):
        slopes = np.zeros(np.shape(arg))
        for place in np.ndindex(np.shape(arg)):

            def moved(by: float, at: int = at, place: Any = place) -> float:
                other = [np.array(each, np.float64) for each in args]
                other[at][place] += by * step
                return float(f(*other))

            slopes[place] = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step)
        found.append(slopes)
    return found


def check_gradient(objective: Function, value: Function, args: Sequence[Any], rtol: float = 1e-7) -> None:
    """Compares value and gradient of an objective with those of an independent function."""
    every = tuple(range(len(args)))
    found, gradients = ox.value_and_grad(lambda *args: objective(xp, *args), every)(*args)
    np.testing.assert_allclose(found, value(*args), rtol=1e-12)
    for own, expected in zip(gradients, differences(value, args), strict=True):
        np.testing.assert_allclose(own, expected, rtol=rtol, atol=rtol * max(1.0, np.abs(expected).max()))


def test_hello() -> None:
    assert ox.value_and_grad(lambda x: hello.square(xp, x))(3.0) == (9.0, 6.0)


def test_gmm() -> None:
    d, k, n = 3, 2, 4
    objective, make = mixture(d, k, n)
    points = np.random.default_rng(1).standard_normal((n, d))  # the first that the problem draws

    def value(alphas: Any, means: Any, logs: Any, lower: Any) -> float:
        total = -n * math.log(sum(math.exp(alpha) for alpha in alphas))
        factors = [np.diag(np.exp(logs[j])) for j in range(k)]
        for j, factor in enumerate(factors):
            numbers = iter(lower[j])
            for column, row in itertools.combinations(range(d), 2):
                factor[_row_of(column, row, d)] = next(numbers)
            total += 0.5 * np.sum(factor**2)
        for x in points:
            terms = [alphas[j] + sum(logs[j]) - 0.5 * sum((factors[j] @ (x - means[j])) ** 2) for j in range(k)]
            total += math.log(sum(map(math.exp, terms)))
        return float(total)

    def _row_of(column: int, row: int, d: int) -> tuple[int, int]:
        return places[column, row]

    # Row by row below the diagonal, as np.tril_indices counts.
    ordered = list(zip(*np.tril_indices(d, -1), strict=True))
    places = dict(zip(itertools.combinations(range(d), 2), ordered, strict=True))
    check_gradient(objective, value, make())


def test_lstm() -> None:
    layers, characters, size = 2, 4, 3
    objective, make = recurrent(layers, characters, size)
    text = np.eye(size)[np.random.default_rng(2).integers(0, size, characters)]

    def sigmoid(x: float) -> float:
        return 1.0 / (1.0 + math.exp(-x))

    def value(main: Any, extra: Any, state: Any) -> float:
        hidden = [list(state[2 * layer]) for layer in range(layers)]
        cell = [list(state[2 * layer + 1]) for layer in range(layers)]
        total = 0.0
        for now, after in itertools.pairwise(text):
            x = [now[k] * extra[0][k] for k in range(size)]
            for layer in range(layers):
                w, b = main[2 * layer], main[2 * layer + 1]
                for k in range(size):
                    forget = sigmoid(x[k] * w[0][k] + b[0][k])
                    take = sigmoid(hidden[layer][k] * w[1][k] + b[1][k])
                    give = sigmoid(x[k] * w[2][k] + b[2][k])
                    change = math.tanh(hidden[layer][k] * w[3][k] + b[3][k])
                    cell[layer][k] = cell[layer][k] * forget + take * change
                    hidden[layer][k] = give * math.tanh(cell[layer][k])
                x = list(hidden[layer])
            y = [x[k] * extra[1][k] + extra[2][k] for k in range(size)]
            total += sum(after[k] * y[k] for k in range(size)) - math.log(sum(map(math.exp, y)) + 2.0)
        return -total / (characters * size)

    check_gradient(objective, value, make())


def test_kmeans() -> None:
    points, centers = kmeans.data(40, 4, 3)

    def value(centers: Any) -> float:
        return sum(min(sum((p - c) ** 2) for c in centers) for p in points)

    f = kmeans.cost(kmeans.constants(points))
    check_gradient(f, value, [centers])
    nearest = [min(range(4), key=lambda j: sum((p - centers[j]) ** 2)) for p in points]
    means = np.array([points[[at == j for at in nearest]].mean(axis=0) for j in range(4)])
    np.testing.assert_allclose(kmeans.direction(points, centers), centers - means, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kmeans.ours(points, centers, record=True).call(), centers - means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ox.hessian_diag(lambda c: f(xp, c))(centers)[0], 2.0 * nearest.count(0))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_det(n: int) -> None:
    objective, make = det.problem(n)
    (matrix,) = make()

    def expanded(rows: list[list[Fraction]]) -> Fraction:
        """The recursion, in fractions: exact."""
        if not rows:
            return Fraction(1)
        minors = ([row[:k] + row[k + 1 :] for row in rows[1:]] for k in range(len(rows)))
        return sum((-1) ** k * rows[0][k] * expanded(minor) for k, minor in enumerate(minors)) + Fraction(0)

    exact = [[Fraction(float(x)) for x in row] for row in matrix]
    value, gradient = ox.value_and_grad(lambda a: objective(xp, a))(matrix)
    assert value == pytest.approx(float(expanded(exact)), rel=1e-12)
    for i, j in np.ndindex(n, n):
        minor = [row[:j] + row[j + 1 :] for k, row in enumerate(exact) if k != i]
        assert gradient[i, j] == pytest.approx(float((-1) ** (i + j) * expanded(minor)), rel=1e-10)


def test_llsq() -> None:
    n, m = 9, 4
    objective, make = llsq.problem(n, m)
    (x,) = make()
    places = [-1.0 + 2.0 * i / (n - 1) for i in range(n)]
    powers = np.array([[t**k for k in range(m)] for t in places])
    residuals = powers @ x - np.sign(places)
    value, gradient = ox.value_and_grad(lambda x: objective(xp, x))(x)
    np.testing.assert_allclose(value, 0.5 * residuals @ residuals)
    np.testing.assert_allclose(gradient, powers.T @ residuals, rtol=1e-12, atol=1e-12)


def test_lse() -> None:
    mpmath = pytest.importorskip("mpmath")
    (x,) = lse.numbers(20)
    value, gradient = ox.value_and_grad(lambda x: lse.log_sum_exp(xp, x))(x)
    total = mpmath.fsum(map(mpmath.exp, x))
    assert value == pytest.approx(float(mpmath.log(total)), rel=1e-15)
    np.testing.assert_allclose(gradient, [float(mpmath.exp(each) / total) for each in x], rtol=1e-12)


def test_ode() -> None:
    (x,) = ode.problem(4, 7)[1]()
    exact = np.cumprod(x) * [ode.END ** (i + 1) / math.factorial(i + 1) for i in range(4)]
    np.testing.assert_allclose(ode.solution(np, x, 7), exact, rtol=1e-12)
    objective, _ = ode.problem(4, 7)
    gradient = ox.grad(lambda x: objective(xp, x))(x)
    np.testing.assert_allclose(gradient, exact[-1] / x, rtol=1e-12)
    (x,) = ode.problem(9, 3)[1]()  # more elements than the method has exactly

    def value(x: Any) -> float:
        y = [0.0] * len(x)

        def change(y: Any) -> list[float]:
            return [x[0], *(x[i] * y[i - 1] for i in range(1, len(x)))]

        h = ode.END / 3
        for _ in range(3):
            k1 = change(y)
            k2 = change([a + h / 2 * k for a, k in zip(y, k1, strict=True)])
            k3 = change([a + h / 2 * k for a, k in zip(y, k2, strict=True)])
            k4 = change([a + h * k for a, k in zip(y, k3, strict=True)])
            y = [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4, strict=True)]
        return y[-1]

    check_gradient(ode.problem(9, 3)[0], value, [x])


def rotation(v: Any) -> np.ndarray:
    """The matrix of a rotation: the exponential of the matrix of a cross product, by its series."""
    cross = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    term = total = np.eye(3)
    for k in range(1, 30):
        term = term @ cross / k
        total = total + term
    return total


@pytest.mark.slow
def test_ba() -> None:
    scene = ba.Scene(2, 3, 7)

    def residuals(cameras: Any, points: Any, weights: Any) -> np.ndarray:
        found = []
        for (camera, point), weight, feature in zip(scene.of.T, weights, scene.features, strict=True):
            c = cameras[camera]
            x, y, z = rotation(c[:3]) @ (points[point] - c[3:6])
            square = (x * x + y * y) / z**2
            factor = 1.0 + c[9] * square + c[10] * square**2
            flat = [c[6] * factor * x / z + c[7], c[6] * factor * y / z + c[8]]
            found += [weight * (flat[0] - feature[0]), weight * (flat[1] - feature[1])]
        return np.array([*found, *(1.0 - weights**2)])

    args = scene.arguments
    np.testing.assert_allclose(scene.residuals(xp, *args), residuals(*args), rtol=1e-10)
    found = ba.ours(scene).call()
    slopes = [differences(lambda *args, row=row: residuals(*args)[row], args) for row in range(21)]
    expected = np.array([np.concatenate([np.ravel(part) for part in row]) for row in slopes])
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6, atol=1e-4)
    assert found.nnz == 2 * 7 * 14 + 7  # a residual does not depend on the principal point's other coordinate
    rows, columns = scene.blocks()
    assert {*zip(rows.ravel(), columns.ravel(), strict=True)} > {*zip(*found[:14].nonzero(), strict=True)}
    jacobian = ox.sparse_jacobian(lambda *args: ba.Scene(20, 30, 200).residuals(xp, *args), (0, 1, 2))
    jacobian(*ba.Scene(20, 30, 200).arguments)
    assert jacobian.products == 14


def hand_vertices(hand: ht.Hand, pose: np.ndarray) -> np.ndarray:
    """The vertices, one by one, with products of three rotations about the axes."""
    relatives, inverses, base, weights = hand.constants(np)[:4]

    def about(axis: int, angle: float) -> np.ndarray:
        return rotation(angle * np.eye(3)[axis])

    absolutes: list[np.ndarray] = []
    for bone in range(ht.BONES):
        x = z = 0.0
        finger, joint = divmod(bone - 2, 4)
        if bone >= 2 and joint < 3:
            begin = 6 + 4 * finger
            x = pose[begin + (0, 2, 3)[joint]]
            z = pose[begin + 1] if joint == 0 else 0.0
        turn = np.eye(4)
        turn[:3, :3] = about(2, z) @ about(0, x)
        parent = 0 if bone == 1 else 1 if joint == 0 else bone - 1
        own = relatives[bone] @ turn
        absolutes.append(own if bone == 0 else absolutes[parent] @ own)
    found = [
        sum(w * (absolutes[bone] @ inverses[bone] @ place) for bone, w in enumerate(shares))
        for place, shares in zip(base, weights, strict=True)
    ]
    return np.array(found)[:, :3] @ rotation(pose[:3]).T + pose[3:6]


def test_ht() -> None:
    hand = ht.Hand(9, 4)
    targets, (nearest, triangles) = hand.constants(np)[4], hand.indices(np)

    def simple(pose: np.ndarray) -> np.ndarray:
        return np.ravel(targets - hand_vertices(hand, pose)[nearest])

    def complicated(pose: np.ndarray, places: np.ndarray) -> np.ndarray:
        corners = hand_vertices(hand, pose)[triangles]
        shares = np.stack([places[:, 0], places[:, 1], 1.0 - places.sum(axis=1)], axis=1)
        return np.ravel(targets - np.sum(corners * shares[..., None], axis=1))

    np.testing.assert_allclose(hand.simple(xp, hand.pose), simple(hand.pose), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(hand.complicated(xp, hand.pose, hand.places), complicated(hand.pose, hand.places))
    columns = [(simple(hand.pose + 1e-6 * u) - simple(hand.pose - 1e-6 * u)) / 2e-6 for u in np.eye(ht.POSE)]
    np.testing.assert_allclose(ht.ours(hand, complicated=False).call(), np.stack(columns, axis=1), atol=1e-7)
    found = ht.ours(hand, complicated=True).call()
    assert found.shape == (12, ht.POSE + 8) and found[:, ht.POSE :].nnz == 24
    ht.ours(hand, complicated=True).check()


class Counted:
    """The gradient of a function that is known by hand, in place of a derivative."""

    def __init__(self, gradient: Function) -> None:
        self.gradient = gradient

    def __call__(self, _: Function) -> Function:
        return self.gradient


@pytest.mark.parametrize("variant", ["ff", "fr", "rf", "rr"])
def test_saddle(variant: str) -> None:
    # The maximum over y does not depend on x, so that the outer gradient is 2 x but for where the inner descent ends.
    slope, step = Counted(lambda x: [2.0 * each for each in x]), saddle.LARGE_STEP
    by_hand = descent.argmin(lambda x: x[0] ** 2 + x[1] ** 2, saddle.START, slope, step)
    found = saddle.saddle_point(*(descent.MODES[letter] for letter in variant), step)
    np.testing.assert_allclose(found, [*by_hand, *by_hand], rtol=1e-9)
    assert 0.0 < max(found) < 1e-4


def test_descents_take_the_steps_that_are_published() -> None:
    """The end of the inner descent of "saddle" from (1, 1), as GradBench has it."""
    slope = Counted(lambda x: [2.0 * each for each in x])
    end = descent.argmin(lambda x: x[0] ** 2 + x[1] ** 2, saddle.START, slope)
    np.testing.assert_allclose(end, [8.246324826140356e-06] * 2, rtol=1e-9)


@pytest.mark.parametrize("variant", ["ff", "fr", "rf", "rr"])
def test_particle(variant: str) -> None:
    outer, inner = (descent.MODES[letter] for letter in variant)

    def force_by_hand(w: float) -> Function:
        def slope(x: Any) -> list[float]:
            total = [0.0, 0.0]
            for charge in ((10.0, 10.0 - w), (10.0, 0.0)):
                apart = [a - b for a, b in zip(x, charge, strict=True)]
                cube = math.hypot(*apart) ** 3
                total = [t - a / cube for t, a in zip(total, apart, strict=True)]
            return total

        return slope

    def value(w: float) -> float:
        return float(particle.miss([w], Counted(force_by_hand(w))))

    for w in (0.0, 0.1, 0.3):
        assert float(particle.miss([w], inner)) == pytest.approx(value(w), rel=1e-12)
        (slope,) = outer(lambda w: particle.miss(w, inner))([w])
        h = 1e-4
        expected = (8 * (value(w + h) - value(w - h)) - (value(w + 2 * h) - value(w - 2 * h))) / (12 * h)
        assert float(slope) == pytest.approx(expected, rel=1e-7)
    assert value(particle.EXPECTED) < 1e-6 < value(particle.EXPECTED + 0.01)


@pytest.fixture
def small() -> Iterator[None]:
    kept = dict(sizes._limits)
    sizes.shrink()
    yield
    sizes._limits.update(kept)


# A row each; "ode" and "gmm" have two that differ by their sizes alone.
NAMES = [row.name for row in ROWS if "100000" not in row.name and "d64" not in row.name]


@pytest.mark.slow  # `make bench-small` runs them too
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("small")
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")
def test_all_contestants_of_a_row_are_valid(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    outcome = row.run(Settings(1, 0.0))
    assert not outcome.wrong, outcome.lines
    assert outcome.data["contestants"][0]["name"].startswith("oxigrad")


def test_every_problem_has_a_row_and_says_its_definition() -> None:
    assert len(PROBLEMS) == 12
    for problem in PROBLEMS:
        assert any(row.name.startswith(f"gradbench {problem}") for row in ROWS)
        text = importlib.import_module(f"gradbench.{problem}").__doc__ or ""
        assert text.startswith(f"{problem}: "), problem


def test_the_command_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import versus

    monkeypatch.setattr(sys, "argv", ["versus"])
    kept = dict(sizes._limits)
    try:
        assert versus.main(["--rows", "hello,det", "--small", "--threads", "1"], "gradbench") == 0
    finally:
        sizes._limits.update(kept)
    assert "gradbench det 10" in capsys.readouterr().out
