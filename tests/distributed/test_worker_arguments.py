"""Numbers and flags in the arguments of workers, wrappers and shards: the error names the argument, and nothing begins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oxigrad import distributed, optim

# Values that are neither a number of steps, nor of seconds, nor a factor, nor a flag.
NONSENSE: list[Any] = ["5", math.nan, [1], -3, 1j, np.ones(2)]
D: Any = distributed


def rank(comm: Any) -> int:
    return comm.rank


def wrapped(cls: Any, name: str, *others: Any) -> Callable[[Any], Any]:
    return lambda value: cls(optim.SGD(0.1), *others, **{name: value})


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "run: timeout": (lambda value: D.run(rank, workers=2, timeout=value), "timeout"),
    "run: workers": (lambda value: D.run(rank, workers=value), "workers"),
    "run: accept_newcomers": (lambda value: D.run(rank, workers=2, accept_newcomers=value), "accept_newcomers"),
    "all_reduce": (lambda value: D.current().all_reduce([np.ones(2)], timeout=value), "timeout"),
    "all_gather_v": (lambda value: D.current().all_gather_v(np.ones(2), timeout=value), "timeout"),
    "broadcast": (lambda value: D.current().broadcast([np.ones(2)], value), "root"),
    **{
        f"shard: {name}": (lambda value, name=name: D.shard(6, **{name: value}), name)
        for name in ("batch_size", "seed")
    },
    **{
        f"shard: {name}": (lambda value, name=name: D.shard(64, **{name: value}), name)
        for name in ("shuffle", "drop_last")
    },
    **{
        f"{cls.__name__}: {name}": (wrapped(cls, name, *others), name)
        for cls, others, names in (
            (D.DataParallel, (), "bucket_bytes overlap local_batches shard_state timeout"),
            (D.LargeBatch, (), "local_batches timeout"),
            (
                D.ModelAverage,
                (),
                "interval block_momentum block_learning_rate nesterov fragments delay alpha timeout",
            ),
            (D.ElasticAverage, (), "period moving_rate rho synchronous deterministic nesterov lease timeout"),
            (D.DeepGradientCompression, (), "ratio warmup momentum nesterov weight_decay clip_norm min_size timeout"),
            (D.SyncReplicas, (2,), "total_replicas lease timeout"),
            (D.Softsync, (), "gradients_per_step scaled limit lease timeout"),
            (D.DropStale, (), "staleness"),
            (
                D.KFAC,
                (),
                "damping factor_decay kl_clip kl_learning_rate split_damping factor_update_steps gradient_workers mean",
            ),
        )
        for name in names.split()
    },
}
FLAGS = "accept_newcomers overlap shard_state nesterov synchronous deterministic scaled split_damping mean shuffle drop_last"


@pytest.mark.parametrize("call", CALLS)
def test_wrong_arguments_are_refused_by_name(call: str) -> None:
    make, name = CALLS[call]
    for value in [*NONSENSE, 1 if name in FLAGS.split() else True]:
        with pytest.raises((TypeError, ValueError), match=rf"(?s)^{name} is "):
            make(value)


def test_names_of_slots() -> None:
    for wrong in ("m", 3, [1], None):
        with pytest.raises(TypeError, match="average_slots is .*: expected True, False or a tuple"):
            D.ModelAverage(optim.Adam(0.1), average_slots=wrong)
    assert D.ModelAverage(optim.Adam(0.1), average_slots=["m"]).average_slots == ("m",)


def test_numbers_of_numpy_are_taken() -> None:
    assert distributed.run(rank, workers=np.int64(2), timeout=np.float64(5.0)) == [0, 1]  # type: ignore[arg-type]
    assert D.ModelAverage(optim.SGD(0.1), interval=np.int64(3)).interval == 3


@pytest.mark.parametrize("name", ["SyncReplicas", "Softsync", "DropStale"])
def test_an_unknown_argument_is_named_with_those_of_the_class(name: str) -> None:
    expected = f"^{name}: unknown: leased; its arguments are optimizer, .*, communicator, timeout, sparse_mean, lease$"
    with pytest.raises(TypeError, match=expected):
        getattr(D, name)(optim.SGD(0.1), 1, leased=3)
