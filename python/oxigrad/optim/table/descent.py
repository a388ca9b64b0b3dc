"""Rows of L-BFGS, SGD and its variants, of rules by layer, and of Adagrad and its relatives."""

from oxigrad import rules
from oxigrad.optim.closures.lbfgs import LBFGS
from oxigrad.optim.table.row import Alias, Keys, add, entry

add(LBFGS, presets={"torch": {"history": 100, "line_search": None}}, optax={}, valleys=(2.0, 100.0))

SGD = entry(
    rules.sgd,
    "SGD",
    presets={"torch": {}, "optax": {}, "keras": {"learning_rate": 0.01, "rate_before_momentum": True}},
    torch=Keys(slots={"m": "momentum_buffer"}, counts=False),
    optax={"sgd": Alias("learning_rate momentum nesterov accumulator_dtype", defaults={"momentum": None})},
    variants={
        "sgd": {"weight_decay": 0.01},
        "momentum": {"momentum": 0.9, "dampening": 0.5},
        "nesterov": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    },
    native={"Sgd": {}, "Momentum": {"momentum": 0.9}, "Nesterov": {"momentum": 0.9, "nesterov": True}},
    valleys=(0.003, 0.03),
)
ASGD = entry(
    rules.asgd,
    "ASGD",
    presets={"torch": {"lambd": 0.0001, "t0": 1000000, "lag": True}},
    torch=Keys(begin={"eta": "learning_rate"}),
    variants={"asgd": {"t0": 2}, "asgd-torch": {"t0": 1, "compat": "torch"}},
    native={"Asgd": {}},
    valleys=(0.003, 0.03),
)
OptimisticSGD = entry(
    rules.optimistic_sgd,
    "OptimisticSGD",
    presets={"optax": {}},
    optax={"optimistic_gradient_descent": "learning_rate alpha beta"},
    variants={"optimistic-sgd": {"alpha": 0.7, "beta": 0.4}},
    native={"OptimisticSgd": {}},
    valleys=(0.001, 0.01),
)
PolyakSGD = entry(
    rules.polyak_sgd,
    "PolyakSGD",
    presets={"optax": {}},
    optax={
        "polyak_sgd": Alias(
            "max_learning_rate scaling f_min eps variant",
            words={"max_learning_rate": "max_size", "scaling": "learning_rate", "f_min": "lower_bound"},
        )
    },
    valleys=(1.0, 1.0),
)
Rprop = entry(
    rules.rprop,
    "Rprop",
    presets={"torch": {}, "optax": {"late": True}},
    torch=Keys(
        hyperparameters={
            "eta_minus": "etas.0",
            "eta_plus": "etas.1",
            "min_size": "step_sizes.0",
            "max_size": "step_sizes.1",
        }
    ),
    optax={"rprop": "learning_rate eta_minus eta_plus min_step_size max_step_size"},
    variants={"rprop": {}, "rprop-late": {"late": True}},
    native={"Rprop": {}},
    valleys=(0.03, 0.0001),
)
Signum = entry(
    rules.signum,
    "Signum",
    presets={"optax": {}},
    optax={"sign_sgd": Alias("learning_rate", fixed={"beta": 0.0}), "signum": "learning_rate beta accumulator_dtype"},
    variants={"signum": {}},
    native={"Signum": {}},
    valleys=(0.02, 0.01),
)
Lion = entry(
    rules.lion,
    "Lion",
    presets={"optax": {"weight_decay": 0.001}, "keras": {"learning_rate": 0.001}},
    optax={"lion": "learning_rate b1 b2 mu_dtype weight_decay mask"},
    variants={"lion": {"weight_decay": 0.1}},
    native={"Lion": {}},
    valleys=(0.01, 0.005),
)
LARS = entry(
    rules.lars,
    "LARS",
    presets={"optax": {}},
    optax={
        "lars": Alias(
            "learning_rate weight_decay weight_decay_mask trust_coefficient eps * momentum nesterov",
            defaults={"weight_decay_mask": True},
        )
    },
    variants={
        "lars": {"weight_decay": 0.1, "trust_coefficient": 0.1, "nesterov": True},
        "lars-separate": {"weight_decay": 0.1, "trust_coefficient": 0.1, "norms": "separate"},
    },
    native={"Lars": {}},
    valleys=(5.0, 3.0),
)
Fromage = entry(
    rules.fromage,
    "Fromage",
    presets={"optax": {}},
    optax={"fromage": "learning_rate min_norm"},
    variants={"fromage": {}},
    valleys=(0.1, 0.02),
)
Adagrad = entry(
    rules.adagrad,
    "Adagrad",
    presets={
        "torch": {},
        "optax": {"initial_accumulator": 0.1, "epsilon": 1e-07, "epsilon_mode": "inside"},
        "keras": {"learning_rate": 0.001, "initial_accumulator": 0.1, "epsilon": 1e-07, "epsilon_mode": "inside"},
    },
    torch=Keys(
        slots={"v": "sum"},
        hyperparameters={"rate_decay": "lr_decay", "initial_accumulator": "initial_accumulator_value"},
    ),
    optax={"adagrad": "learning_rate initial_accumulator_value eps"},
    variants={"adagrad": {"rate_decay": 0.1}, "adagrad-inside": {"compat": "optax"}},
    native={"Adagrad": {}},
    valleys=(1.0, 0.3),
)
Adadelta = entry(
    rules.adadelta,
    "Adadelta",
    presets={"torch": {}, "optax": {}, "keras": {"learning_rate": 0.001, "rho": 0.95, "epsilon": 1e-07}},
    torch=Keys(slots={"v": "square_avg", "u": "acc_delta"}),
    optax={
        "adadelta": Alias(
            "learning_rate rho eps weight_decay weight_decay_mask",
            parts=("Regularize", "Adadelta"),
            words={"weight_decay": "l2"},
            defaults={"learning_rate": None},
        )
    },
    variants={"adadelta": {}},
    native={"Adadelta": {}},
    valleys=(2.0, 2.0),
)
RMSprop = entry(
    rules.rmsprop,
    "RMSprop",
    presets={
        "torch": {},
        "optax": {"rho": 0.9, "epsilon_mode": "inside", "rate_before_momentum": True},
        "keras": {
            "learning_rate": 0.001,
            "rho": 0.9,
            "epsilon": 1e-07,
            "epsilon_mode": "inside",
            "rate_before_momentum": True,
        },
    },
    torch=Keys(slots={"v": "square_avg", "mean": "grad_avg", "m": "momentum_buffer"}, hyperparameters={"rho": "alpha"}),
    optax={
        "rmsprop": Alias(
            "learning_rate decay eps initial_scale eps_in_sqrt centered momentum nesterov bias_correction",
            defaults={"momentum": None},
        )
    },
    variants={
        "rmsprop": {},
        "rmsprop-inside": {"compat": "optax"},
        "rmsprop-corrected": {"compat": "optax", "bias_correction": True},
        "rmsprop-momentum": {"momentum": 0.9, "nesterov": True},
        "rmsprop-centered": {"centered": True},
        "rmsprop-all": {"centered": True, "momentum": 0.9, "epsilon_mode": "inside"},
    },
    native={"RmsProp": {}, "RmsPropMomentum": {"momentum": 0.9}, "RmsPropCentered": {"centered": True}},
    valleys=(0.1, 0.02),
)
FTRL = entry(
    rules.ftrl,
    "FTRL",
    presets={"keras": {}},
    variants={"ftrl": {"l1": 0.01, "l2": 0.01, "shrinkage": 0.01, "beta": 0.1}},
    native={"Ftrl": {}},
    valleys=(1.0, 0.5),
)
MADGRAD = entry(
    rules.madgrad,
    "MADGRAD",
    presets={"optax": {}},
    optax={
        "madgrad": Alias(
            "learning_rate momentum weight_decay eps", parts=("Regularize", "MADGRAD"), words={"weight_decay": "l2"}
        )
    },
    variants={"madgrad": {}},
    native={"Madgrad": {}},
    valleys=(0.03, 0.2),
)
