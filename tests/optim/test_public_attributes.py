"""`dir` of optimizers, parts and the loss scale: the documented attributes, and nothing else."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from oxigrad import distributed, optim

OPTIONS = """
    accumulate loss_scale master nonfinite record_norms rounding seed slot_dtype sparse state_device zero_gradients
""".split()
METHODS = """
    ahead apply averaged_parameters build compute_gradients copied_parameters current flush get_config global_norm init load load_state_dict
    minimize rebuild save scale_loss state_dict summary swap_in swap_out table update
""".split()
READ = ["name", "recorded_norms", "scale", "skipped", "slots", "step"]
OPTIMIZER = {*OPTIONS, *METHODS, *READ}
OF_ONE_RULE = {*OPTIMIZER, "dtype", "groups", "hyperparameters", "program"}

MADE: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "SGD": (optim.SGD, OF_ONE_RULE),
    "Adam": (optim.Adam, OF_ONE_RULE),
    "LBFGS": (optim.LBFGS, OF_ONE_RULE),
    "chain": (lambda: optim.chain(optim.ClipByValue(), optim.SGD()), OF_ONE_RULE | {"parts"}),
    "chain around a partition": (
        lambda: optim.chain(optim.ClipByValue(), optim.partition({"*": optim.SGD()})),
        OPTIMIZER | {"optimizers", "parts", "limit"},
    ),
    "wrapper": (
        lambda: distributed.LargeBatch(optim.SGD()),
        OF_ONE_RULE
        | {
            "bucket_bytes",
            "hyperparameters_of",
            "communicator",
            "leave",
            "local_batches",
            "no_sync",
            "optimizer",
            "overlap",
            "pending",
            "record_timeline",
            "reform",
            "report",
            "shard_state",
            "start",
            "take_step",
        }
        | {"timeline", "timeout"},
    ),
    "partition": (lambda: optim.partition({"*": optim.SGD()}), OPTIMIZER | {"optimizers"}),
    "SAM": (lambda: optim.SAM(optim.SGD()), OPTIMIZER | {"optimizer", "perturbed", "rho", "eta", "adaptive"}),
    "part": (optim.EMA, {"get_config", "hyperparameters"}),
    "loss scale": (
        optim.LossScale,
        {"factor", "get_config", "good", "initial", "interval", "load_state_dict", "observe", "state_dict", "value"},
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_the_attributes_of(name: str) -> None:
    make, documented = MADE[name]
    made = make()
    own = set(getattr(made, "hyperparameters", ()))
    assert {found for found in dir(made) if not found.startswith("_")} == documented | own


@pytest.mark.parametrize("name", MADE)
def test_a_misspelt_attribute(name: str) -> None:
    made = MADE[name][0]()
    near = {"part": "decay", "loss scale": "interval", "SAM": "rho"}.get(name, "nonfinite")
    misspelt = near[:-1] + near[-1] * 2
    with pytest.raises(AttributeError, match=f"{misspelt}.*did you mean {near}"):
        setattr(made, misspelt, 1)
    with pytest.raises(AttributeError, match=misspelt):
        getattr(made, misspelt)


def test_a_misspelt_hyperparameter() -> None:
    with pytest.raises(AttributeError, match="learning_rte.*did you mean learning_rate"):
        optim.SGD().learning_rte = 1


def test_attributes_that_depend_on_the_parts_are_listed_and_set() -> None:
    """By `dir`, and by the object, whose class is the one that it is made by."""
    chained = optim.chain(optim.ClipByValue(), optim.SGD(0.1))
    wrapped = distributed.DataParallel(chained)
    around = optim.chain(optim.partition({"*": optim.SGD()}), optim.EMA())
    for made, name in [
        (chained, "learning_rate"),
        (chained.parts[1], "learning_rate"),
        (wrapped, "learning_rate"),
        (around, "decay"),
    ]:
        assert name in dir(made) and name not in vars(made) and not hasattr(type(made), name)
        assert getattr(made, name) == {"decay": 0.999}.get(name, 0.1)
        setattr(made, name, 0.5)
        assert getattr(made, name) == 0.5 and name not in vars(made)
        with pytest.raises(ValueError, match=f"{name} is -1"):
            setattr(made, name, -1.0)
        setattr(made, name, 0.1)
    assert around.parts[1].decay == 0.1 and chained.hyperparameters["learning_rate"] == 0.1
    assert [type(made) for made in (chained, wrapped)] == [type(optim.chain(optim.SGD())), distributed.DataParallel]


def test_the_wrapper_nearest_to_the_user_has_an_attribute() -> None:
    inner = distributed.LargeBatch(optim.SGD(0.1), 2, timeout=1.0)
    outer = distributed.ModelAverage(inner, 3, timeout=2.0)
    assert (outer.timeout, inner.timeout, outer.local_batches, outer.learning_rate) == (2.0, 1.0, 2, 0.1)
    outer.learning_rate, outer.seed = 0.5, 7
    assert (inner.optimizer.learning_rate, inner.optimizer.seed) == (0.5, 7)
    assert {"learning_rate", "seed"}.isdisjoint(vars(outer))
    with pytest.raises(
        AttributeError, match=r"ModelAverage has no attribute learning_rte \(did you mean learning_rate\?\)"
    ):
        outer.learning_rte = 1.0
    with pytest.raises(AttributeError, match="ModelAverage: sparse is fixed"):
        outer.sparse = "lazy"
    copies = [pickle.loads(pickle.dumps(outer)), copy.deepcopy(outer)]  # noqa: S301 - our own
    assert [(each.local_batches, each.learning_rate) for each in copies] == [(2, 0.5), (2, 0.5)]
    assert all(type(each) is type(outer) for each in copies)


class Doubling(distributed.LargeBatch):
    """A wrapper of the user's."""


def test_a_wrapper_of_the_users_is_pickled_by_its_class() -> None:
    opt = Doubling(optim.SGD(0.1), 2)
    restored, (_, _, *classes) = opt.__reduce__()
    assert Doubling in classes and restored.__module__.startswith("oxigrad")
    assert isinstance(optim.from_config(opt.get_config()), Doubling)
