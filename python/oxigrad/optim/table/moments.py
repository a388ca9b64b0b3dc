"""Rows of Adam's variants, learning-rate estimates, schedule-free rules and rules of whole matrices."""

from oxigrad import rules
from oxigrad.optim.table.row import Alias, Keys, entry

Adam = entry(
    rules.adam,
    "Adam",
    presets={"torch": {}, "optax": {}, "keras": {"epsilon": 1e-07, "epsilon_mode": "hat"}},
    optax={
        "adam": Alias("learning_rate b1 b2 eps eps_root mu_dtype * nesterov", nesterov=("NAdam",)),
        "amsgrad": Alias("learning_rate b1 b2 eps eps_root mu_dtype", fixed={"amsgrad": "corrected"}),
    },
    variants={
        "adam": {},
        "adam-inside": {"epsilon_mode": "inside"},
        "adam-hat": {"compat": "keras"},
        "amsgrad": {"amsgrad": "raw"},
        "amsgrad-corrected": {"amsgrad": "corrected"},
    },
    native={"Adam": {}, "AdamAmsgrad": {"amsgrad": "raw"}},
    valleys=(0.5, 0.5),
)
AdamW = entry(
    rules.adamw,
    "AdamW",
    presets={
        "torch": {},
        "optax": {"weight_decay": 0.0001},
        "keras": {"weight_decay": 0.004, "epsilon": 1e-07, "epsilon_mode": "hat"},
    },
    optax={
        "adamw": Alias(
            "learning_rate b1 b2 eps eps_root mu_dtype weight_decay mask * nesterov", nesterov=("NAdam", "WeightDecay")
        ),
    },
    variants={"adamw": {}, "adamw-amsgrad": {"amsgrad": "raw", "epsilon_mode": "hat"}},
    native={
        "AdamW": {},
        "AdamWAmsgrad": {"amsgrad": "raw"},
        "AdamWMaster": {"master": True},
        "AdamWKahan": {"rounding": "kahan"},
    },
    valleys=(0.2, 0.2),
)
AdamC = entry(
    rules.adamc,
    "AdamC",
    variants={"adamc": {"weight_decay": 0.1, "max_learning_rate": 0.5}},
    valleys=(0.2, 0.2),
)
StableAdamW = entry(
    rules.stable_adamw,
    "StableAdamW",
    variants={"stable-adamw": {"weight_decay": 0.1}},
    valleys=(0.2, 0.2),
)
AdamLRD = entry(
    rules.adam_lrd,
    "AdamLRD",
    variants={
        "adam-lrd": {"dropout_rate": 0.5, "seed": 3},
        "adam-lrd-amsgrad": {"dropout_rate": 0.5, "amsgrad": "raw"},
    },
    native={"AdamLrd": {}},
    valleys=(0.5, 0.5),
)
Adamax = entry(
    rules.adamax,
    "Adamax",
    presets={"torch": {}, "optax": {}, "keras": {"learning_rate": 0.001, "epsilon": 1e-07, "epsilon_mode": "outside"}},
    torch=Keys(slots={"u": "exp_inf"}),
    optax={
        "adamax": "learning_rate b1 b2 eps",
        "adamaxw": Alias("learning_rate b1 b2 eps weight_decay mask", parts=("Adamax", "WeightDecay")),
    },
    variants={"adamax": {}, "adamax-outside": {"epsilon_mode": "outside"}},
    native={"Adamax": {}},
    valleys=(1.0, 0.3),
)
NAdam = entry(
    rules.nadam,
    "NAdam",
    presets={
        "torch": {},
        "optax": {"constant_momentum": True},
        "keras": {"learning_rate": 0.001, "momentum_decay": 1.0, "epsilon": 1e-07},
    },
    torch=Keys(slots={"product": "mu_product"}),
    optax={
        "nadam": Alias(
            "learning_rate b1 b2 eps eps_root mu_dtype * nesterov",
            parts=("Adam",),
            defaults={"nesterov": True},
            nesterov=("NAdam",),
        ),
        "nadamw": Alias(
            "learning_rate b1 b2 eps eps_root mu_dtype weight_decay mask * nesterov",
            parts=("AdamW",),
            defaults={"nesterov": True},
            nesterov=("NAdam", "WeightDecay"),
        ),
    },
    variants={"nadam": {}, "nadam-constant": {"constant_momentum": True}},
    native={"NAdam": {}},
    valleys=(0.1, 0.05),
)
RAdam = entry(
    rules.radam,
    "RAdam",
    presets={"torch": {}, "optax": {"epsilon_mode": "outside"}},
    optax={"radam": "learning_rate b1 b2 eps eps_root threshold"},
    variants={"radam": {"beta2": 0.9}},
    native={"RAdam": {}},
    valleys=(0.005, 0.1),
)
OptimisticAdam = entry(
    rules.optimistic_adam,
    "OptimisticAdam",
    presets={"optax": {}},
    optax={"optimistic_adam_v2": "learning_rate * alpha beta b1 b2 eps eps_root mu_dtype nesterov"},
    variants={"optimistic-adam": {"beta": 0.4}, "optimistic-adam-plain": {"nesterov": False, "epsilon_root": 1e-06}},
    native={"OptimisticAdam": {}},
    valleys=(0.2, 0.05),
)
AdaBelief = entry(
    rules.adabelief,
    "AdaBelief",
    presets={"optax": {}},
    optax={"adabelief": "learning_rate b1 b2 eps eps_root"},
    variants={"adabelief": {}},
    native={"AdaBelief": {}},
    valleys=(1.0, 0.5),
)
AdEMAMix = entry(
    rules.ademamix,
    "AdEMAMix",
    presets={"optax": {}},
    optax={"ademamix": "learning_rate b1 b2 b3 alpha eps eps_root mu_dtype weight_decay mask"},
    variants={"ademamix": {"weight_decay": 0.1}},
    native={"AdEmaMix": {}},
    valleys=(0.3, 0.3),
)
SimplifiedAdEMAMix = entry(
    rules.simplified_ademamix,
    "SimplifiedAdEMAMix",
    presets={"optax": {}},
    optax={"simplified_ademamix": "learning_rate b1 b2 alpha eps eps_root weight_decay mask"},
    variants={"simplified-ademamix": {"weight_decay": 0.1, "alpha": 2.0}},
    valleys=(0.0005, 0.0003),
)
LaProp = entry(rules.laprop, "LaProp", variants={"laprop": {}}, valleys=(1.0, 0.3))
ADOPT = entry(
    rules.adopt,
    "ADOPT",
    presets={"optax": {}},
    optax={"adopt": "learning_rate b1 b2 eps mu_dtype * use_clipping"},
    variants={"adopt": {}, "adopt-unclipped": {"clipped": False}},
    native={"Adopt": {}},
    valleys=(3.0, 1.0),
)
Adan = entry(
    rules.adan,
    "Adan",
    presets={"optax": {"epsilon_root": 1e-08, "proximal": False, "change_weight": "1 - beta2"}},
    optax={"adan": "learning_rate b1 b2 b3 eps eps_root weight_decay mask"},
    variants={"adan": {"weight_decay": 0.1}, "adan-optax": {"weight_decay": 0.1, "compat": "optax"}},
    native={"Adan": {}},
    valleys=(0.5, 0.01),
)
Yogi = entry(
    rules.yogi,
    "Yogi",
    presets={"optax": {"initial_moment": 1e-06}},
    optax={"yogi": "learning_rate b1 b2 eps"},
    variants={"yogi": {}},
    native={"Yogi": {}},
    valleys=(0.5, 0.2),
)
LAMB = entry(
    rules.lamb,
    "LAMB",
    presets={"optax": {}, "keras": {"epsilon": 1e-07, "decoupled": True}},
    optax={"lamb": "learning_rate b1 b2 eps eps_root weight_decay mask"},
    variants={
        "lamb": {"weight_decay": 0.1},
        "lamb-clamped": {"weight_decay": 0.1, "clamp": True, "max_trust": 2.0, "decoupled": True},
    },
    native={"Lamb": {}},
    valleys=(0.1, 0.005),
)
NovoGrad = entry(
    rules.novograd,
    "NovoGrad",
    presets={"optax": {}},
    optax={"novograd": "learning_rate b1 b2 eps eps_root weight_decay"},
    variants={"novograd": {"weight_decay": 0.1}},
    native={"NovoGrad": {}},
    valleys=(0.002, 0.001),
)
Sophia = entry(
    rules.sophia,
    "Sophia",
    presets={"optax": {"weight_decay": 0.0001}},
    optax={
        "sophia": "learning_rate b1 b2 eps weight_decay weight_decay_mask gamma clip_threshold update_interval * "
        "mu_dtype batch_size estimate"
    },
    variants={"sophia": {"every": 2}, "sophia-given": {"estimate": "given"}},
    native={"Sophia": {}},
    valleys=(0.1, 0.02),
)
Prodigy = entry(
    rules.prodigy,
    "Prodigy",
    presets={"optax": {}},
    optax={
        "prodigy": Alias(
            "learning_rate betas beta3 eps estim_lr0 estim_lr_coef weight_decay safeguard_warmup",
            words={"betas": ("beta1", "beta2")},
            defaults={"learning_rate": ..., "beta3": None},
        )
    },
    variants={
        "prodigy": {"learning_rate": 1.0, "weight_decay": 0.1, "d0": 0.01},
        "prodigy-warmup": {"learning_rate": 1.0, "d0": 0.01, "safeguard_warmup": True},
    },
    native={"Prodigy": {}},
    valleys=(50.0, 0.1),
)
DoG = entry(
    rules.dog,
    "DoG",
    presets={"optax": {}},
    optax={
        "dog": Alias(
            "learning_rate init_step eps weight_decay mask",
            defaults={"learning_rate": ...},
        )
    },
    variants={
        "dog": {"learning_rate": 1.0, "initial_value": 0.1},
        "dog-distance": {"learning_rate": 1.0, "initial": "distance", "initial_value": 0.1, "weight_decay": 0.1},
        "dog-rate": {"learning_rate": 1.0, "initial": "learning_rate", "initial_value": 0.1},
    },
    valleys=(3.0, 1.0),
)
DoWG = entry(
    rules.dowg,
    "DoWG",
    presets={"optax": {}},
    optax={
        "dowg": Alias(
            "learning_rate init_estim_sq_dist eps weight_decay mask",
            defaults={"learning_rate": ...},
        )
    },
    variants={
        "dowg": {"learning_rate": 1.0, "weight_decay": 0.1},
        "dowg-initial": {"learning_rate": 1.0, "initial_distance": 0.1},
    },
    valleys=(1.0, 0.2),
)
DAdaptSGD = entry(
    rules.dadapt_sgd,
    "DAdaptSGD",
    variants={"dadapt-sgd": {"learning_rate": 1.0, "momentum": 0.9, "d0": 0.1, "growth_rate": 1.5}},
    valleys=(1.0, 0.1),
)
DAdaptAdamW = entry(
    rules.dadapt_adamw,
    "DAdaptAdamW",
    presets={"optax": {}},
    optax={"dadapt_adamw": Alias("learning_rate betas eps estim_lr0 weight_decay", defaults={"learning_rate": ...})},
    variants={
        "dadapt-adamw": {"learning_rate": 1.0, "weight_decay": 0.1, "d0": 0.01},
        "dadapt-adam": {
            "learning_rate": 1.0,
            "weight_decay": 0.1,
            "d0": 0.01,
            "bias_correction": False,
            "decoupled": False,
        },
    },
    valleys=(1.0, 0.5),
)
COCOB = entry(
    rules.cocob,
    "COCOB",
    presets={"optax": {}},
    optax={"cocob": Alias("learning_rate alpha eps weight_decay mask", defaults={"learning_rate": ...})},
    variants={"cocob": {"learning_rate": 1.0, "weight_decay": 0.1, "alpha": 10.0}},
    valleys=(1e-06, 0.003),
)
MoMo = entry(
    rules.momo,
    "MoMo",
    presets={"optax": {}},
    torch=Keys(hyperparameters={"lower_bound": "lb", "adapt_lower_bound": "use_fstar"}),
    optax={
        "momo": Alias("learning_rate beta lower_bound weight_decay adapt_lower_bound", defaults={"learning_rate": ...})
    },
    valleys=(0.05, 0.1),
)
MoMoAdam = entry(
    rules.momo_adam,
    "MoMoAdam",
    presets={"optax": {}},
    torch=Keys(hyperparameters={"lower_bound": "lb", "adapt_lower_bound": "use_fstar", "proximal": "divide"}),
    optax={
        "momo_adam": Alias(
            "learning_rate b1 b2 eps lower_bound weight_decay adapt_lower_bound", defaults={"learning_rate": ...}
        )
    },
    valleys=(5.0, 0.2),
)
ScheduleFreeSGD = entry(
    rules.schedule_free_sgd,
    "ScheduleFreeSGD",
    average=rules.schedule_free_average,
    presets={"optax": {}},
    torch=Keys(hyperparameters={"beta1": "momentum"}),
    optax={
        "schedule_free_sgd": Alias(
            "learning_rate * b1 weight_decay weight_lr_power state_dtype", defaults={"learning_rate": ...}
        )
    },
    variants={"schedule-free-sgd": {}},
    native={"ScheduleFreeSgd": {}},
    valleys=(0.005, 0.1),
)
ScheduleFreeAdamW = entry(
    rules.schedule_free_adamw,
    "ScheduleFreeAdamW",
    average=rules.schedule_free_average,
    presets={"optax": {}, "keras": {"weight_power": 0.0, "decoupled": True}},
    optax={
        "schedule_free_adamw": Alias(
            "learning_rate * b1 b2 eps weight_decay weight_lr_power state_dtype", defaults={"learning_rate": ...}
        )
    },
    variants={
        "schedule-free-adamw": {"weight_decay": 0.1},
        "schedule-free-adamw-keras": {"weight_decay": 0.1, "compat": "keras"},
    },
    native={"ScheduleFreeAdamW": {}},
    valleys=(0.5, 0.3),
)
Adafactor = entry(
    rules.adafactor,
    "Adafactor",
    elementwise=False,
    presets={
        "torch": {},
        "optax": {
            "learning_rate": 1.0,
            "epsilon1": 1e-30,
            "add_epsilon": True,
            "factored": "largest",
            "min_factored": 128,
            "relative_step": False,
        },
        "keras": {"learning_rate": 0.001, "epsilon1": 1e-30, "add_epsilon": True},
    },
    torch=Keys(
        slots={"row": "row_var", "column": "col_var", "v": "variance"},
        hyperparameters={"epsilon1": "eps.0", "epsilon2": "eps.1", "clipping": "d"},
        missing={"epsilon1": {"float16": 2.0**-10, "bfloat16": 2.0**-7}},  # the machine epsilon
        takes_complex=False,
    ),
    optax={
        "adafactor": Alias(
            "learning_rate min_dim_size_to_factor decay_rate * multiply_by_parameter_scale clipping_threshold "
            "momentum dtype_momentum eps factored",
            words={"eps": "epsilon1"},
            defaults={"learning_rate": None, "momentum": None, "dtype_momentum": "float32"},
        )
    },
    variants={
        "adafactor": {"learning_rate": 0.5},
        "adafactor-all": {
            "momentum": 0.9,
            "factored": "largest",
            "min_factored": 4,
            "weight_decay": 0.1,
            "add_epsilon": True,
        },
    },
    valleys=(1.0, 0.02),
)
SM3 = entry(
    rules.sm3,
    "SM3",
    elementwise=False,
    presets={"optax": {}},
    optax={"sm3": "learning_rate momentum"},
    variants={"sm3": {}},
    valleys=(3.0, 1.0),
)
Muon = entry(
    rules.muon,
    "Muon",
    elementwise=False,
    presets={
        "torch": {},
        "optax": {"weight_decay": 0.0, "epsilon": 1e-08, "adjust": "transposed", "debias": True},
        "keras": {"weight_decay": 0.004, "adjust": "match_rms_adamw"},
    },
    torch=Keys(
        slots={"m": "momentum_buffer"},
        hyperparameters={
            "a": "ns_coefficients.0",
            "b": "ns_coefficients.1",
            "c": "ns_coefficients.2",
            "iterations": "ns_steps",
            "adjust": "adjust_lr_fn",
        },
        missing={"adjust": "original"},
        counts=False,
        takes_complex=False,
    ),
    optax={},
)
Shampoo = entry(
    rules.shampoo,
    "Shampoo",
    elementwise=False,
    variants={"shampoo": {"interval": 3, "momentum": 0.9, "grafting": "adagrad", "max_size": 4}},
    valleys=(0.5, 2.0),
)
SOAP = entry(
    rules.soap,
    "SOAP",
    elementwise=False,
    variants={"soap": {"interval": 3, "max_size": 4}},
    valleys=(0.02, 0.02),
)
GaLore = entry(
    rules.galore,
    "GaLore",
    elementwise=False,
    torch=Keys(hyperparameters={"interval": "update_proj_gap", "update_scale": "scale", "projection": "proj_type"}),
    optax={},
    variants={
        "galore": {"rank": 2, "interval": 3, "update_scale": 0.5},
        "galore-full": {"rank": 2, "projection": "full", "weight_decay": 0.1},
    },
)
