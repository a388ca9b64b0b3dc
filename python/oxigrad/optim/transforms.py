"""The table of transforms for chains: a row for each. The rules are in `oxigrad.rules.gradient_transforms`."""

from collections.abc import Callable, Mapping
from typing import Any

from oxigrad.optim.chain import Transform, transformed
from oxigrad.rules import gradient_transforms as rules

# The classes by name.
TRANSFORMS: dict[str, type[Transform]] = {}


def _transform(
    rule: Callable[..., Any],
    kind: str,
    name: str | None = None,
    *,
    elementwise: bool = True,
    average: Callable[..., Any] | None = None,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
) -> type[Transform]:
    """The class of a rule of this kind, as by `oxigrad.optim.transform`, with the presets of other libraries."""
    made = transformed(rule, kind, name, "oxigrad.optim", elementwise=elementwise, average=average)
    made._presets = presets or {}
    TRANSFORMS[made.__name__] = made
    return made


ClipByValue = _transform(rules.clip_by_value, "gradient")
ClipByNorm = _transform(rules.clip_by_norm, "gradient")
ClipByGlobalNorm = _transform(rules.clip_by_global_norm, "gradient")
Maximize = _transform(rules.maximize, "gradient")
Regularize = _transform(rules.regularize, "gradient")
GradientNoise = _transform(rules.gradient_noise, "gradient")
Centralize = _transform(rules.centralize, "gradient", elementwise=False)
AdaptiveGradientClip = _transform(rules.adaptive_gradient_clip, "gradient", elementwise=False)
MARS = _transform(rules.mars, "gradient", "MARS")
Cautious = _transform(rules.cautious, "gradient")
LearningRateDropout = _transform(rules.learning_rate_dropout, "gradient")
ScheduleFree = _transform(rules.schedule_free, "after", average=rules.schedule_free_average)
WeightDecay = _transform(rules.weight_decay, "after", presets={"optax": {"weight_decay": 1e-4}})
EMA = _transform(
    rules.ema,
    "after",
    "EMA",
    presets={
        "torch": {"average_from": "first_step"},
        "optax": {"average_from": "zeros"},
        "keras": {"average_from": "first_step", "decay": 0.99},
    },
)
SWA = _transform(rules.swa, "after", "SWA", presets={"torch": {}})
Lookahead = _transform(rules.lookahead, "after")
Copy = _transform(rules.copy, "after")
