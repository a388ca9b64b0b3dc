"""Kills processes of jobs at random while they train, and cuts the link of jobs on two hosts; checks their results.

    python tests/distributed/soak.py --kills 200 --cuts 20

Nine tenths of the kills are of workers that train by each wrapper under MPI, on Ray and on torch, in an order that the seed shuffles.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import jobs
import two_hosts
from job_soak import REPLICAS, UPDATES, WRAPPERS, train, train_by, train_shards, undisturbed

from oxigrad.distributed import TimedOut
from oxigrad.distributed.engines.threads import ThreadJob

WORKERS, DEATHS = 6, 4
"""The workers of a job by one wrapper under MPI and on Ray, and those that are killed."""
PATIENCE = 4.0 * jobs.DEADLINE
"""The seconds that such a job takes at most, on a machine that has other work too."""


def tell(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def kill_threads(seed: int) -> None:
    """Kills one of three threads while it trains by each wrapper; the others finish."""
    chosen = random.Random(seed)
    for name in WRAPPERS:
        job, victim = ThreadJob(lambda comm, name=name: train_by(comm, name), 3), chosen.randrange(3)
        job.start()
        time.sleep(0.7)
        job.kill(victim)
        check(f"{name} on threads", job.wait(jobs.DEADLINE), 2, name)


def kill_workers_of_wrappers(kills: int, seed: int, names: Iterable[str]) -> int:
    """Kills workers that train by each wrapper on each of these engines, all of them before one comes again; returns the number of kills."""
    chosen, killed = random.Random(seed), 0
    run_by: dict[str, Callable[..., list[Any]]] = {"mpi": under_mpi, "ray": on_ray, "torch": on_torch}
    pairs = [*itertools.product([*WRAPPERS, "shard_state"], names)]
    while True:
        chosen.shuffle(pairs)
        for name, engine in pairs:
            if killed >= kills:
                return killed
            victims = chosen.sample(range(WORKERS), DEATHS)
            deaths = {str(rank): [chosen.randrange(3, 25), chosen.uniform(0.0, 0.1)] for rank in victims}
            killed += DEATHS
            what = f"{killed} of {kills}: {name} by {engine}, kill -9 of ranks {', '.join(map(str, victims))}"
            with tempfile.TemporaryDirectory() as folder:
                work = ("train_shards", folder) if name == "shard_state" else ("train_by", name)
                check(what, run_by[engine](*work, deaths), WORKERS - DEATHS, name)


def under_mpi(*job: Any) -> list[Any]:
    """The results of the survivors of a job of MPI."""
    work, *arguments = job
    run = jobs.launched(WORKERS, work, *map(json.dumps, arguments), timeout=PATIENCE)
    found = jobs.results(run.stdout)
    assert found, run.stderr
    return found


def on_ray(work: str, *arguments: Any) -> list[Any]:
    """The results of the workers of a job of Ray, None for those that have died."""
    from oxigrad.distributed.engines.ray import RayJob

    train_in = {"train_by": train_by, "train_shards": train_shards}[work]
    return RayJob(lambda comm: train_in(comm, *arguments), WORKERS, timeout=jobs.DEADLINE).wait(PATIENCE)


def on_torch(work: str, *arguments: Any) -> list[Any]:
    """The results of the workers of a job of torch, None for those that have died; this process has the rendezvous."""
    from test_torch_membership import Job

    with Job(work, *map(json.dumps, arguments), timeout=60.0).start(WORKERS) as job:
        return job.results()


def check(what: str, results: list[Any], survivors: int, name: str) -> None:
    """Checks the results of workers, None for those that have died."""
    found = [result for result in results if result is not None]
    assert len(found) == survivors and all(result[:2] == [UPDATES, True] for result in found), (what, results)
    assert name not in REPLICAS or len({result[2] for result in found}) == 1, (what, results)
    assert name != "shard_state" or found[0] == undisturbed(), (what, results)
    tell(f"{what}: the others took {found[0][0]} updates")


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
            tell(f"{number + 1} of {kills}: kill -9 of {name}")
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
        tell(f"{number + count} of {kills}: kill -9 of ranks {victims} of MPI")
        found = jobs.results(run.stdout)
        assert [result[0] for result in found] == [0, 1, 2, 3], (found, run.stderr)
        assert all(result[3:] == [12 * 20_000.0, 12] for result in found), found


def cut_links(cuts: int, seed: int, steps: int = 150) -> int:
    """Cuts the link between two hosts while they train, under MPI and torch; returns the number of cuts, 0 where there are no namespaces."""
    chosen, done = random.Random(seed), 0
    expected = {method: two_hosts.expected(steps, method) for method in two_hosts.METHODS}
    try:
        link = two_hosts.Link().__enter__()
    except (OSError, subprocess.CalledProcessError) as error:
        tell(f"no links are cut: network namespaces are not permitted here: {error}")
        return 0
    try:
        for method, engine in itertools.cycle(itertools.product(expected, ("mpi", "torch"))):
            if done >= cuts:
                return done
            goal = min(cuts, done + -(-cuts // (2 * len(expected))))
            with tempfile.TemporaryDirectory() as folder:
                job = two_hosts.Job(link, engine, Path(folder), timeout=120.0, steps=steps, method=method)
                try:
                    job.wait_for("steps")
                    while not job.has_ended() and done < goal:
                        link.set("down")
                        time.sleep(chosen.uniform(0.05, 0.8))
                        link.set("up")
                        done += 1
                        time.sleep(chosen.uniform(0.2, 0.6))
                    assert job.results() == [expected[method]] * 2, (engine, method, job.results())
                finally:
                    job.end()
            tell(f"{done} of {cuts} cuts of a link: the bits of one host, {method} by {engine}")
    finally:
        link.__exit__(None, None, None)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument(
        "--engines", default="mpi,ray,torch", help="those whose workers are killed: any of mpi, ray and torch"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cuts = cut_links(options.cuts, options.seed)
    kill_threads(options.seed)
    engines = options.engines.split(",")
    killed = kill_workers_of_wrappers(9 * options.kills // 10, options.seed, engines)
    rest = max(options.kills - killed, 0) if {"mpi", "ray"} & {*engines} else 0
    of_mpi = rest if "ray" not in engines else 0 if "mpi" not in engines else rest // 3
    kill_processes_of_mpi(of_mpi)
    steps = kill_processes_of_ray(rest - of_mpi, options.seed) if "ray" in engines else 0
    tell(f"{killed + rest} kills, {cuts} cuts, {steps} steps of a job under Ray: no parameter lost or changed")


if __name__ == "__main__":
    os.environ.setdefault("JOB_TIMEOUT", str(jobs.DEADLINE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    main()
