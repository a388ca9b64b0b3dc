"""The table of transforms for chains: a row for each. The rules are in `oxigrad.rules`."""

from collections.abc import Callable, Mapping
from typing import Any

from oxigrad.optim.chain import Transform, transformed
from oxigrad.rules import gradient_transforms
from oxigrad.rules.orthogonal import orthogonalize

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
    cls = transformed(rule, kind, name, "oxigrad.optim", elementwise=elementwise, average=average)
    cls._presets = presets or {}
    TRANSFORMS[cls.__name__] = cls
    return cls


ClipByValue = _transform(gradient_transforms.clip_by_value, "gradient")
ClipByNorm = _transform(gradient_transforms.clip_by_norm, "gradient")
ClipByGlobalNorm = _transform(gradient_transforms.clip_by_global_norm, "gradient")
Maximize = _transform(gradient_transforms.maximize, "gradient")
Regularize = _transform(gradient_transforms.regularize, "gradient")
GradientNoise = _transform(gradient_transforms.gradient_noise, "gradient")
Centralize = _transform(gradient_transforms.centralize, "gradient", elementwise=False)
AdaptiveGradientClip = _transform(gradient_transforms.adaptive_gradient_clip, "gradient", elementwise=False)
NormalizeRows = _transform(gradient_transforms.normalize_rows, "gradient", elementwise=False)
ScaleByShape = _transform(gradient_transforms.scale_by_shape, "gradient", elementwise=False)
MARS = _transform(gradient_transforms.mars, "gradient", "MARS")
Cautious = _transform(gradient_transforms.cautious, "gradient")
LearningRateDropout = _transform(gradient_transforms.learning_rate_dropout, "gradient")
ScheduleFree = _transform(gradient_transforms.schedule_free, "after", average=gradient_transforms.schedule_free_average)
WeightDecay = _transform(gradient_transforms.weight_decay, "after", presets={"optax": {"weight_decay": 1e-4}})
Orthogonalize = _transform(orthogonalize, "after", elementwise=False)
Hyperball = _transform(gradient_transforms.hyperball, "after", elementwise=False)
EMA = _transform(
    gradient_transforms.ema,
    "after",
    "EMA",
    presets={
        "torch": {"average_from": "first_step"},
        "optax": {"average_from": "zeros"},
        "keras": {"average_from": "first_step", "decay": 0.99},
    },
)
SWA = _transform(gradient_transforms.swa, "after", "SWA", presets={"torch": {}})
Lookahead = _transform(gradient_transforms.lookahead, "after")
Copy = _transform(gradient_transforms.copy, "after")
