"""Kills processes of a job at random while it trains, and checks its result: ``python tests/distributed/soak.py --kills 100``."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import jobs

import oxigrad as ox
from oxigrad.distributed import ElasticAverage, TimedOut, WorkerLost
from oxigrad.distributed.communicator import serving
from oxigrad.distributed.engines.threads import ThreadJob


def train(comm: Any, stop: str) -> tuple[int, bool]:
    """Adds ones to parameters until the file ``stop`` exists; returns the steps, and whether the parameters are as many."""
    state, step, done = np.zeros(50_000), np.zeros(1, int), np.zeros(1, int)
    fresh = comm.generation > 0
    while True:
        try:
            if fresh:
                comm.broadcast([step, state])
                fresh = False
            done[0] = Path(stop).exists()
            comm.broadcast([done])
            if done[0]:
                return int(step[0]), bool(np.array_equal(state, np.full_like(state, step[0])))
            gradient = np.ones(50_000)
            comm.all_reduce([gradient])
        except WorkerLost:
            comm, fresh = comm.reform(), True
            continue
        state += gradient
        step += 1


# Those of the tests, but for the exchanges of elastic averaging in turns, in which a worker waits for one that has died, and for slots
# in shards, of which the part of a lost worker is lost.
WRAPPERS = {
    **{name: method for name, method in jobs.METHODS.items() if name != "shard_state"},
    "elastic": lambda size: ElasticAverage(ox.optim.Adam(0.1), 2, moving_rate=0.2),
}


def train_by(comm: Any, name: str, steps: int = 40) -> tuple[int, bool]:
    """Trains by one wrapper, through the losses of other workers; returns the number of updates, and whether the parameters are finite."""
    rng, model = np.random.default_rng(comm.rank), {"w": np.linspace(-1, 1, 12).reshape(4, 3), "b": np.zeros(3)}
    with serving(comm):
        opt, updates = WRAPPERS[name](2), 0
        with opt:
            while updates < steps:
                x, y = rng.standard_normal((5, 4)), rng.standard_normal((5, 3))

                def loss(model: Any, x: Any = x, y: Any = y) -> Any:
                    return ox.xp.mean((x @ model["w"] + model["b"] - y) ** 2)

                try:
                    model = opt.start(model)
                    opt.minimize(loss, model)
                except WorkerLost:
                    model = opt.reform(model)
                    continue
                updates += 1
                time.sleep(0.05)
    return updates, bool(np.isfinite(model["w"]).all() and np.isfinite(model["b"]).all())


def kill_a_worker_of_each_wrapper(make: Any, kill: Any, seed: int, names: Any = None) -> None:
    """Kills one of three workers while it trains by each wrapper; the others finish.

    ``make`` makes a job of a worker function, and ``kill(job, rank)`` kills one of its workers.
    """
    chosen = random.Random(seed)
    for name in names or WRAPPERS:
        job, victim = make(lambda comm, name=name: train_by(comm, name)), chosen.randrange(3)
        kill(job, victim)
        results = [result for result in job.wait(jobs.DEADLINE) if result is not None]
        assert len(results) == 2 and all(result == (40, True) for result in results), (name, victim, results)
        sys.stdout.write(f"{name}: worker {victim} was killed, the others took {results[0][0]} updates\n")
        sys.stdout.flush()


def kill_thread(job: Any, rank: int) -> None:
    """Kills a thread after some steps."""
    job.start()
    time.sleep(0.7)
    job.kill(rank)


def kill_process_of_ray(job: Any, rank: int) -> None:
    """Kills a process after some steps."""
    _when_three_train(job)
    time.sleep(0.7)
    os.kill([*job.pids().values()][1 + rank], signal.SIGKILL)


def kill_processes_of_ray(kills: int, seed: int) -> int:
    """Kills workers and the coordinator of a job of Ray, which replaces them; returns the number of steps."""
    from oxigrad.distributed.engines.ray import RayJob

    chosen = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        stop = str(Path(folder) / "stop")
        job = RayJob(lambda comm: train(comm, stop), 3, restarts=kills, timeout=jobs.DEADLINE)
        for number in range(kills):
            pids = _when_three_train(job)
            name = chosen.choice(sorted(pids))
            sys.stdout.write(f"{number + 1} of {kills}: kill -9 of {name}\n")
            sys.stdout.flush()
            os.kill(pids[name], signal.SIGKILL)
        _when_three_train(job)
        Path(stop).touch()
        results = [result for result in job.wait(jobs.DEADLINE) if result is not None]
    assert len(results) == 3, results
    assert all(is_right for _, is_right in results), results
    assert len({steps for steps, _ in results}) == 1, results
    return results[0][0]


def _when_three_train(job: Any) -> dict[str, int]:
    """The processes, once three workers belong to the generation of a coordinator that is alive."""
    import ray

    deadline = time.monotonic() + jobs.DEADLINE
    while time.monotonic() < deadline:
        job.poll(0.05)
        try:
            if ray.get(job.coordinator.count.remote(), timeout=10) == 3:
                return job.pids()
        except ray.exceptions.RayError:  # one of them is being restarted
            continue
    raise TimedOut("no three workers train")


def kill_processes_of_mpi(kills: int) -> None:
    """Kills the workers of jobs of MPI, which spare processes replace, three in each job."""
    for number in range(0, kills, 3):
        count = min(3, kills - number)
        victims = str([(number + i) % 4 for i in range(count)])
        run = jobs.launched(4, "train", victims, options=("--spares", str(count)))
        sys.stdout.write(f"{number + count} of {kills}: kill -9 of ranks {victims} of MPI\n")
        found = jobs.results(run.stdout)
        assert [result[0] for result in found] == [0, 1, 2, 3], (found, run.stderr)
        assert all(result[3:] == [12 * 20_000.0, 12] for result in found), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from oxigrad.distributed.engines.ray import RayJob

    kill_a_worker_of_each_wrapper(lambda work: ThreadJob(work, 3), kill_thread, options.seed)
    kill_a_worker_of_each_wrapper(lambda work: RayJob(work, 3, timeout=60.0), kill_process_of_ray, options.seed)
    of_mpi = options.kills // 4
    kill_processes_of_mpi(of_mpi)
    steps = kill_processes_of_ray(options.kills - of_mpi, options.seed)
    sys.stdout.write(f"{options.kills} kills, {steps} steps under Ray, no parameter lost or changed\n")


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    main()
