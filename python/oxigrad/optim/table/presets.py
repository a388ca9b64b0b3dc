"""Presets: combinations of optimizers of the table by one call."""

from collections.abc import Iterable, Mapping
from typing import Any

from oxigrad.optim.partition import Partition, partition
from oxigrad.optim.settings.param_groups import Matrices
from oxigrad.optim.table.moments import AdamW, Muon


def muon_with_adamw(
    learning_rate: Any = 1e-3,
    weight_decay: Any = 0.1,
    *,
    muon: Mapping[str, Any] | None = None,
    adamw: Mapping[str, Any] | None = None,
    excluded: Iterable[str] = ("*embed*", "*head*"),
    **options: Any,
) -> Partition:
    """`Muon` for the hidden matrices of a network, and `AdamW` for all other parameters, as a `partition`.

    Muon uses ``adjust="match_rms_adamw"``, so that its updates have the size of AdamW's, and one learning rate and one
    weight decay serve both (Liu et al. 2025, arXiv:2502.16982).

    Args:
        learning_rate: step size of both optimizers, a number or a schedule.
        weight_decay: strength of the weight decay of both.
        muon: further hyperparameters of Muon. With ``matrices`` set, parameters of more than two axes are Muon's too.
        adamw: further hyperparameters of AdamW, also ``learning_rate`` and ``weight_decay``.
        excluded: globs of key paths of matrices for AdamW: embeddings and output layers.
        **options: options of both optimizers, by keyword; see `Optimizer`.

    >>> import numpy as np
    >>> opt = muon_with_adamw(0.1, adamw={"learning_rate": 0.01, "weight_decay": 0.0})
    >>> model = {"embedding": np.zeros((2, 2)), "hidden": np.zeros((2, 2)), "bias": np.zeros(2)}
    >>> model = opt.update(model, {name: np.ones_like(value) for name, value in model.items()})
    >>> model["bias"], sorted(opt.slots["hidden"]), sorted(opt.slots["embedding"])
    (array([-0.01, -0.01]), ['m'], ['m', 'v'])
    """
    shared = {"learning_rate": learning_rate, "weight_decay": weight_decay}
    of_muon = Muon(**{**shared, "adjust": "match_rms_adamw", **(muon or {})})
    matrices = Matrices(
        (excluded,) if isinstance(excluded, str) else excluded,  # pyright: ignore[reportArgumentType] - it is checked
        of_muon.matrices is not None,
    )
    return partition({matrices: of_muon, "*": AdamW(**{**shared, **(adamw or {})})}, **options)
