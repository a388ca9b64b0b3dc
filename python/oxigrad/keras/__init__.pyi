# Printed by make generated.
from collections.abc import Iterable
from typing import Any

import keras

class _Optimizer(keras.optimizers.Optimizer):
    def __init__(
        self, learning_rate: Any = None, *, no_weight_decay: str | Iterable[str] = (), **settings: Any
    ) -> None: ...

class ADOPT(_Optimizer):
    """`oxigrad.optim.ADOPT` as an optimizer of Keras."""

class ASGD(_Optimizer):
    """`oxigrad.optim.ASGD` as an optimizer of Keras."""

class AdEMAMix(_Optimizer):
    """`oxigrad.optim.AdEMAMix` as an optimizer of Keras."""

class AdaBelief(_Optimizer):
    """`oxigrad.optim.AdaBelief` as an optimizer of Keras."""

class Adadelta(_Optimizer):
    """`oxigrad.optim.Adadelta` as an optimizer of Keras."""

class Adafactor(_Optimizer):
    """`oxigrad.optim.Adafactor` as an optimizer of Keras."""

class Adagrad(_Optimizer):
    """`oxigrad.optim.Adagrad` as an optimizer of Keras."""

class Adam(_Optimizer):
    """`oxigrad.optim.Adam` as an optimizer of Keras."""

class AdamC(_Optimizer):
    """`oxigrad.optim.AdamC` as an optimizer of Keras."""

class AdamW(_Optimizer):
    """`oxigrad.optim.AdamW` as an optimizer of Keras."""

class Adamax(_Optimizer):
    """`oxigrad.optim.Adamax` as an optimizer of Keras."""

class Adan(_Optimizer):
    """`oxigrad.optim.Adan` as an optimizer of Keras."""

class DAdaptAdamW(_Optimizer):
    """`oxigrad.optim.DAdaptAdamW` as an optimizer of Keras."""

class DAdaptSGD(_Optimizer):
    """`oxigrad.optim.DAdaptSGD` as an optimizer of Keras."""

class DoG(_Optimizer):
    """`oxigrad.optim.DoG` as an optimizer of Keras."""

class DoWG(_Optimizer):
    """`oxigrad.optim.DoWG` as an optimizer of Keras."""

class FTRL(_Optimizer):
    """`oxigrad.optim.FTRL` as an optimizer of Keras."""

class Fromage(_Optimizer):
    """`oxigrad.optim.Fromage` as an optimizer of Keras."""

class LAMB(_Optimizer):
    """`oxigrad.optim.LAMB` as an optimizer of Keras."""

class LARS(_Optimizer):
    """`oxigrad.optim.LARS` as an optimizer of Keras."""

class LaProp(_Optimizer):
    """`oxigrad.optim.LaProp` as an optimizer of Keras."""

class Lion(_Optimizer):
    """`oxigrad.optim.Lion` as an optimizer of Keras."""

class MADGRAD(_Optimizer):
    """`oxigrad.optim.MADGRAD` as an optimizer of Keras."""

class Muon(_Optimizer):
    """`oxigrad.optim.Muon` as an optimizer of Keras for matrices, and `oxigrad.optim.AdamW` for all other variables."""
    def __init__(
        self, learning_rate: Any = None, *, excluded: Any = ('embedding',), adamw: Any = None,
        no_weight_decay: Any = (), **settings: Any,
    ) -> None: ...

class NAdam(_Optimizer):
    """`oxigrad.optim.NAdam` as an optimizer of Keras."""

class NovoGrad(_Optimizer):
    """`oxigrad.optim.NovoGrad` as an optimizer of Keras."""

class Prodigy(_Optimizer):
    """`oxigrad.optim.Prodigy` as an optimizer of Keras."""

class RAdam(_Optimizer):
    """`oxigrad.optim.RAdam` as an optimizer of Keras."""

class RMSprop(_Optimizer):
    """`oxigrad.optim.RMSprop` as an optimizer of Keras."""

class Rprop(_Optimizer):
    """`oxigrad.optim.Rprop` as an optimizer of Keras."""

class SGD(_Optimizer):
    """`oxigrad.optim.SGD` as an optimizer of Keras."""

class SM3(_Optimizer):
    """`oxigrad.optim.SM3` as an optimizer of Keras."""

class SOAP(_Optimizer):
    """`oxigrad.optim.SOAP` as an optimizer of Keras."""

class Shampoo(_Optimizer):
    """`oxigrad.optim.Shampoo` as an optimizer of Keras."""

class Signum(_Optimizer):
    """`oxigrad.optim.Signum` as an optimizer of Keras."""

class SimplifiedAdEMAMix(_Optimizer):
    """`oxigrad.optim.SimplifiedAdEMAMix` as an optimizer of Keras."""

class StableAdamW(_Optimizer):
    """`oxigrad.optim.StableAdamW` as an optimizer of Keras."""

class Yogi(_Optimizer):
    """`oxigrad.optim.Yogi` as an optimizer of Keras."""
