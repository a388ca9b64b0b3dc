"""Every wrapper over a model on a CUDA device, whose parameters kernels update: the numbers of the same training in host memory."""

from __future__ import annotations

from typing import Any

import arrays
import executor
import jobs
import numpy as np
import pytest
from mock_driver import MockDriver

from oxigrad import distributed
from oxigrad.cuda import driver

# Their updates are computed in host memory: by coordinators, or by the owners of parts of the state.
ON_HOST = {"sync_replicas", "softsync", "drop_stale", "shard_state"}


@pytest.mark.skipif(executor.COMPILER is None, reason="g++ is missing")
@pytest.mark.parametrize("name", jobs.METHODS)
def test_a_model_on_a_device_is_trained_as_one_in_host_memory(name: str) -> None:
    def worker(comm: Any, *library: Any) -> Any:
        return jobs.trained(comm, jobs.METHODS[name](comm.size), *library)

    expected = distributed.run(worker, workers=2)
    with driver.replaced(MockDriver()) as mock:
        found = distributed.run(lambda comm: worker(comm, arrays.Array, arrays.host), workers=2)
        assert bool(mock.launches()) == (name not in ON_HOST)
    for of_worker, others in zip(found, expected, strict=True):
        for array, other in zip(of_worker, others, strict=True):
            np.testing.assert_allclose(array, other, rtol=1e-9, atol=1e-12)  # sums of the gradients have another order
