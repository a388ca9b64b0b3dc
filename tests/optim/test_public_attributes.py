"""`dir` of optimizers, parts and the loss scale: the documented attributes, and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from oxigrad import optim

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
