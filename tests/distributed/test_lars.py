"""Large batches: local accumulation on several workers takes the steps of one worker with all batches as one."""

import copy
import json
import threading
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim, xp
from oxigrad.distributed import LargeBatch
from oxigrad.distributed.engines.threads import ThreadJob

DEADLINE = 120.0
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((48, 5)), RNG.standard_normal((48, 3))

Model = dict[str, Any]


def new_model() -> Model:
    generator = np.random.default_rng(1)
    return {"w": generator.standard_normal((5, 3)), "bias": generator.standard_normal(3)}


def loss(model: Model, x: np.ndarray, y: np.ndarray) -> Any:
    return xp.mean((xp.tanh(x @ model["w"] + model["bias"]) - y) ** 2)


def lars() -> Any:
    """LARS with warm-up; as in the paper, biases are exempt from the trust ratio and the decay."""
    rate = ox.schedules.warmup_cosine(5.0, warmup=2, steps=8)
    plain = optim.SGD(0.1, momentum=0.9)
    return optim.partition({"*bias": plain, "*": optim.LARS(rate, weight_decay=1e-4, norms="separate")})


def paper(steps: int) -> Model:
    """LARS of You et al. 2017, algorithm 1, on the whole batch, transcribed."""
    model, rate = new_model(), ox.schedules.warmup_cosine(5.0, warmup=2, steps=8)
    v, m = np.zeros((5, 3)), np.zeros(3)
    for step in range(steps):
        g = ox.grad(loss)(model, X, Y)
        w = model["w"]
        local = 1e-3 * np.linalg.norm(w) / (np.linalg.norm(g["w"]) + 1e-4 * np.linalg.norm(w))
        v = 0.9 * v + rate(step) * local * (g["w"] + 1e-4 * w)
        m = 0.9 * m + g["bias"]
        model = {"w": w - v, "bias": model["bias"] - 0.1 * m}
    return model


def trained(communicator: Any, steps: int, local_batches: int, make: Any = lars) -> tuple[Model, LargeBatch]:
    model, opt = new_model(), LargeBatch(make(), local_batches, communicator=communicator)
    batches = np.array_split(np.arange(len(X)), communicator.size * local_batches)
    own = batches[communicator.rank :: communicator.size]
    for _ in range(steps):
        for batch in own:
            opt.minimize(lambda m, at=batch: loss(m, X[at], Y[at]), model)
    return model, opt


def assert_close(found: Model, expected: Model, tolerance: float = 1e-12) -> None:
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("workers", "local_batches"), [(1, 1), (1, 4), (2, 1), (2, 3), (4, 2)])
def test_workers_with_local_batches_take_the_steps_of_the_paper_with_one_batch(
    workers: int, local_batches: int
) -> None:
    found = distributed.run(lambda comm: trained(comm, 6, local_batches), workers=workers, timeout=DEADLINE)
    for model, opt in found:
        assert_close(model, paper(6))
        assert opt.step == 6 and opt.pending == 0 and opt.report()[0].accepted == 6 * local_batches
        for name, array in model.items():
            np.testing.assert_array_equal(array, found[0][0][name])


def test_a_mean_of_gradients_is_not_a_mean_of_steps() -> None:
    # The trust ratio of each worker's own gradient gives other steps: the ratio is taken of the mean.
    def separate(comm: Any) -> Model:
        model, opt = new_model(), optim.LARS(5.0)
        part = np.array_split(np.arange(len(X)), comm.size)[comm.rank]
        opt.minimize(lambda m: loss(m, X[part], Y[part]), model)
        comm.all_reduce([model["w"].reshape(-1)])
        return model

    joint = LargeBatch(optim.LARS(5.0))
    expected = new_model()
    joint.minimize(lambda m: loss(m, X, Y), expected)
    found = distributed.run(separate, workers=4, timeout=DEADLINE)
    assert float(np.max(np.abs(found[0]["w"] - expected["w"]))) > 1e-6


def test_batches_that_complete_no_step_send_nothing_and_change_nothing() -> None:
    def worker(comm: Any) -> list[int]:
        model, opt = new_model(), LargeBatch(lars(), 3, communicator=comm)
        opt.start(model)
        before, sent = copy.deepcopy(model), []
        for _ in range(3):
            start = comm.bytes_sent
            opt.minimize(lambda m: loss(m, X, Y), model)
            sent.append(comm.bytes_sent - start)
            if opt.pending:
                assert_close(model, before, 0.0)
        return sent

    for sent in distributed.run(worker, workers=2, timeout=DEADLINE):
        assert sent[:2] == [0, 0] and sent[2] > 0


def test_the_others_take_the_step_without_a_worker_that_has_died() -> None:
    def worker(comm: Any) -> Any:
        assert ready.wait(DEADLINE)
        model, opt, rank = {"w": np.zeros(2)}, LargeBatch(optim.SGD(1.0), 2), comm.rank
        for step in range(6):
            if rank == 1 and step == 3:
                job.kill(1)
            model = opt.update(model, {"w": np.full(2, float(2**rank))})
        return model["w"], opt

    ready = threading.Event()
    job = ThreadJob(worker, 3, timeout=DEADLINE)
    ready.set()
    first, dead, last = job.wait(DEADLINE)
    assert dead is None
    for found, opt in (first, last):  # one step of three gradients, two of two
        np.testing.assert_allclose(found, -(7 / 3 + 2 * 5 / 2))
        assert opt.step == 3 and opt.report()[0].accepted == 6


def test_a_worker_that_joins_between_steps_adds_what_it_has() -> None:
    def train(opt: LargeBatch, model: Model, rank: int, batches: range) -> Any:
        for batch in batches:
            if batch == 3 and rank < 2:
                assert joining.wait(DEADLINE)
                model = opt.reform(model)
            model = opt.update(model, {"w": np.full(2, float(2**rank))})
        return model["w"], opt

    def late(comm: Any) -> Any:
        opt = LargeBatch(optim.SGD(1.0), 4)
        return train(opt, opt.start({"w": np.full(2, 9.0)}), 2, range(3, 8))

    joining = threading.Event()
    job = ThreadJob(
        lambda comm: train(LargeBatch(optim.SGD(1.0), 4), {"w": np.zeros(2)}, comm.rank, range(8)),
        2,
        accept_newcomers=True,
    )
    job.join(late)
    joining.set()
    for found, opt in job.wait(DEADLINE):  # 4 gradients of 1, 4 of 2 and 1 of 4; then 4 of each
        np.testing.assert_allclose(found, -(16 / 9 + 28 / 12))
        assert opt.step == 2 and opt.pending == 0


def test_the_option_accumulate_gives_the_same_steps() -> None:
    expected, opt = new_model(), optim.LARS(5.0, accumulate=3)
    for part in np.split(np.arange(48), 3) * 4:
        opt.minimize(lambda m, at=part: loss(m, X[at], Y[at]), expected)
    found, _ = trained(distributed.current(), 4, 3, lambda: optim.LARS(5.0))
    assert_close(found, expected)


def test_rows_stay_rows() -> None:
    def worker(comm: Any) -> Any:
        model = {"table": np.zeros((5, 2))}
        opt = LargeBatch(optim.Adam(1.0, sparse="lazy"), 2, communicator=comm)
        for row in (comm.rank, 3):
            model = opt.update(model, {"table": ox.SparseRows([row, row], np.ones((2, 2)), (5, 2))})
        return model["table"], opt.slots["table"]["m"]

    for table, m in distributed.run(worker, workers=2, timeout=DEADLINE):
        np.testing.assert_allclose(m[:, 0], 0.1 * np.array([0.5, 0.5, 0.0, 1.0, 0.0]))
        assert table[2].tolist() == [0.0, 0.0] and (table[[0, 1, 3]] < 0).all()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_run_resumes_between_steps_to_the_bit(is_sparse: bool, tmp_path: Any) -> None:
    def new() -> LargeBatch:
        return LargeBatch(optim.Adam(0.1, sparse="lazy" if is_sparse else "dense"), 3)

    def gradient(k: int) -> Any:
        values = np.random.default_rng(k).standard_normal((2, 2))
        return {"t": ox.SparseRows([k % 4, 3], values, (4, 2)) if is_sparse else np.tile(values, (2, 1))}

    opt, model = new(), {"t": np.ones((4, 2))}
    for k in range(5):
        opt.update(model, gradient(k))
    opt.save(tmp_path / "state.safetensors")
    others = [new(), ox.optim.from_config(json.loads(json.dumps(opt.get_config()))), copy.deepcopy(opt)]
    others[0].load(tmp_path / "state.safetensors")
    others[1].load_state_dict(opt.state_dict())
    models = [copy.deepcopy(model) for _ in others]
    for k in range(5, 12):
        opt.update(model, gradient(k))
        for other, own in zip(others, models, strict=True):
            other.update(own, gradient(k))
            np.testing.assert_array_equal(own["t"], model["t"])
    assert opt.step == 4


def test_a_sum_is_not_an_array_of_the_user() -> None:
    opt, model, gradient = LargeBatch(optim.SGD(1.0), 2), {"w": np.zeros(2)}, {"w": np.ones(2)}
    opt.update(model, gradient)
    gradient["w"][:] = 100.0
    assert opt.update(model, {"w": np.ones(2)})["w"].tolist() == [-1.0, -1.0]


def test_halves_are_added_up_in_single_precision() -> None:
    opt, model = LargeBatch(optim.SGD(1.0, master=True), 2049), {"w": np.zeros(1, np.float16)}
    for _ in range(2049):  # a sum in half precision would stop at 2048
        opt.update(model, {"w": np.ones(1, np.float16)})
    assert model["w"].tolist() == [-1.0]


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="local_batches"):
        LargeBatch(optim.SGD(0.1), 0)
    with pytest.raises((TypeError, ValueError), match="local_batches"):
        LargeBatch(optim.SGD(0.1), 1.5)
    opt, model = LargeBatch(optim.SGD(0.1), 3), {"w": np.zeros(2)}
    opt.update(model, {"w": np.ones(2)})
    with pytest.raises(ValueError, match="1 of 3 batches are added up"):
        opt.local_batches = 2
    with pytest.raises(ox.ShapeError, match="w: "):
        opt.update(model, {"w": np.ones(3)})
    assert opt.pending == 1
    opt.update(model, {"w": np.ones(2)})
    with pytest.raises(ox.StateError, match="2 batches are added up: expected less than local_batches, 2"):
        LargeBatch(optim.SGD(0.1), 2).load_state_dict(opt.state_dict())
