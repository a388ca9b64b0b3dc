"""The work of workers in tests of trainings with faults."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from job_faults import DEADLINE, FAULTS, die, stop_and_continue
from job_methods import METHODS

import oxigrad as ox
from oxigrad import distributed, xp
from oxigrad.distributed import (
    Excluded,
    Header,
    NotSupported,
    WorkerLost,
)
from oxigrad.distributed.communicator import SingleWorker

STRAGGLED = [[0, 10, []], [1, 10, []], [2, 0, ["stale"]]]
"""The results of `straggle`."""


def run_out(comm: Any) -> list[list[int]]:
    """Workers with data for 9, 3 and 6 gradients, which leave; returns the accepted gradients of each worker."""
    model = {"w": np.zeros(10)}
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 1, 3, communicator=comm) as opt:
        opt.join(model)
        used = 0
        while used < (9, 3, 6)[comm.rank]:
            opt.update(model, {"w": np.ones(10)})
            used += sum(told.accepted for told in opt.verdicts)
    assert np.isfinite(model["w"]).all()
    return [[report.rank, report.accepted] for report in opt.report()] if comm.rank == 0 else []


def replicas(comm: Any, victim: int) -> Any:
    """Two of three gradients a step, with one worker killed; returns the rank and the number of accepted gradients."""
    model, accepted = {"w": np.zeros(30_000)}, 0
    steps = 0
    try:
        with distributed.SyncReplicas(ox.optim.SGD(0.1), 1, 3, communicator=comm) as opt:
            opt.join(model)
            while accepted < 10 or victim == 0:
                opt.update(model, {"w": np.ones(30_000)})
                accepted += sum(told.accepted for told in opt.verdicts)
                steps += 1
                if comm.rank == victim and steps == 3:
                    die(comm)
    except WorkerLost as error:
        return f"lost {sorted(error.ranks)}"
    return [comm.rank, accepted]


SURVIVING = {
    "sync_replicas": lambda opt, comm: distributed.SyncReplicas(opt, 2, 3, communicator=comm),
    "softsync": lambda opt, comm: distributed.Softsync(opt, 1, scaled=False, communicator=comm),
    "drop_stale": lambda opt, comm: distributed.DropStale(opt, 3, communicator=comm),
}


def finish_first(comm: Any, method: str) -> list[int]:
    """Rank 0 ends its work after 3 updates and leaves nothing, the others after 30; returns the rank and whether it went on."""
    opt, model = SURVIVING[method](ox.optim.SGD(1.0), comm), {"w": np.zeros(5)}
    used = 0
    for _ in range(3 if comm.rank == 0 else 30):
        model = opt.update(model, {"w": np.ones(5)})
        used += sum(told.accepted for told in opt.verdicts)
        time.sleep(0.001)
    assert model["w"].tolist() == [-float(opt.step)] * 5
    # The few gradients of rank 0 may all be late. A step may have two gradients of one worker.
    return [comm.rank, int(comm.rank == 0 or (used > 0 and opt.step > 3))]


def end_apart(comm: Any, method: str, short: int, leaves: bool = False) -> list[Any]:
    """Rank ``short`` ends its work after 6 updates, the others after 20.

    Returns the rank and its updates. An error adds its text, and the workers that continue after `reform`.
    """
    opt, model = METHODS[method](comm.size), {"w": np.ones((4, 3)), "b": np.zeros(3)}
    result: list[Any] = [comm.rank, 0]
    try:
        while result[1] < (6 if comm.rank == short else 20):
            opt.minimize(lambda model: (model["w"] ** 2).sum() + (model["b"] ** 2).sum(), model)
            result[1] += 1
    except WorkerLost as error:
        result.append(str(error))
        if method != "shard_state":
            opt.reform(model)
            result.append(opt.communicator.size)
    if leaves or comm.rank != short:
        opt.leave(model)
    return result


def update_in_turn(comm: Any, method: str, turns: list[list[int]], starts: bool = True) -> Any:
    """The parameters of two models after steps by one wrapper each, which a worker takes in the order of its ``turns``."""
    opts = [METHODS[method](comm.size) for _ in range(2)]
    models = [{"w": np.ones((1, 1)), "b": np.ones(1)} for _ in opts]

    def loss(model: Any, scale: float) -> Any:
        return xp.sum(np.ones((2, 1)) @ model["w"] + model["b"]) * scale

    try:
        for which in (0, 1) if starts else ():
            opts[which].start(models[which])
        for _ in range(8):
            for which in turns[comm.rank]:
                opts[which].minimize(lambda model, scale=(1.0, -3.0)[which]: loss(model, scale), models[which])
    except distributed.Refused as error:
        return [error.reason, str(error)]
    return [{path: array.tolist() for path, array in model.items()} for model in models]


def finish_keeping_the_centre(comm: Any) -> list[int]:
    """Rank 0, which keeps the centre, ends its work after 3 updates and leaves nothing, the others after 30; returns the rank and its steps."""
    opt = distributed.ElasticAverage(ox.optim.SGD(0.1), 1, moving_rate=0.25, communicator=comm)
    model = {"w": np.zeros(5)}
    for _ in range(3 if comm.rank == 0 else 30):
        model = opt.update(model, {"w": np.ones(5)})
        time.sleep(0.001)
    return [comm.rank, opt.step]


def constant_gradient() -> dict[str, np.ndarray]:
    """A gradient that all workers have in every step, so that the steps do not depend on whose gradients they are by."""
    rng = np.random.default_rng(3)
    return {"w": rng.standard_normal((20, 5)), "b": rng.standard_normal(5).astype("f4")}


def survive(
    comm: Any, method: str = "sync_replicas", how: str = "kill", wanted: int = 1, make: Any = None, steps: int = 12
) -> Any:
    """Trains while a fault of rank 0 ends the generation; returns the steps told before and after, and digests of the state.

    The digests, of the parameters and of the slots, are by the number of steps that they are of. A fault leaves as many as wanted.
    """
    opt = SURVIVING[method](ox.optim.Adam(0.01) if make is None else make(), comm)
    model, acknowledged, is_first = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}, [], comm.generation == 0
    newest = 0
    with opt:
        while True:
            try:
                model = opt.join(model)
                if opt.communicator.size < wanted:
                    raise WorkerLost(())
                if is_first and comm.rank == 0 and opt.communicator.generation == 0 and opt.verdicts and opt.step >= 4:
                    FAULTS[how](comm)
                if opt.communicator.generation > 0 and opt.step >= steps:
                    break
                opt.update(model, constant_gradient())
                newest = max([newest, *(told.step for told in opt.verdicts if told.accepted)])
            except WorkerLost:
                acknowledged.append(newest)
                model = opt.reform(model)
                acknowledged.append(opt.step)
    return [acknowledged, opt.communicator.size, opt.state_dict()["step"], digest(opt.state_dict()["slots"])]


def pulled(comm: Any, how: str = "kill", steps: int = 6) -> list[Any]:
    """Elastic averaging of rank 1, whose centre is lost after half of the steps; returns its parameters, and the centre.

    Rank 0 keeps the centre at first, and takes no step. Without a fault (an empty text) the centre stays there.
    """
    opt: Any = distributed.ElasticAverage(ox.optim.Adam(0.1), 1, moving_rate=0.3, communicator=comm)
    model = opt.start({"w": np.ones(5)})
    if comm.rank == 0:
        comm.recv_any([np.empty(0)], tag=99)
        if how:
            FAULTS[how](comm)
        opt.leave(model)
        return []
    for step in range(steps):
        if step == steps // 2:
            comm.send(0, Header(tag=99), [np.empty(0)])
            while how and 0 in comm.alive():
                time.sleep(0.001)
        gradient = {"w": np.arange(5.0) - step}
        try:
            model = opt.update(model, gradient)
        except WorkerLost:
            model = opt.update(opt.reform(model), gradient)
    found = model["w"].tolist()
    opt.leave(model)
    return [found, opt.centre()["w"].tolist()]


def fence(comm: Any, folder: str, method: str = "sync_replicas", how: str = "fence", make: Any = None) -> Any:
    """The process, or the thread, of the coordinator is stopped for longer than the time-out, and goes on when the others have ended.

    Returns what `survive` does, or the name of the error of rank 0. Where the engine cannot form a new generation, returns the loss.
    """
    goes_on, has_ended = Path(folder) / "goes on", Path(folder) / "has ended"
    opt = SURVIVING[method](ox.optim.Adam(0.01) if make is None else make(), comm)
    opt.timeout = 2.0
    model, acknowledged, newest = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}, [], 0
    try:
        with opt:
            while opt.communicator.generation == 0 or opt.step < 12:
                try:
                    model = opt.join(model)
                    if comm.rank == 0 and opt.communicator.generation == 0 and opt.step >= 4:
                        FAULTS[how](goes_on)
                    opt.update(model, constant_gradient())
                    newest = max([newest, *(told.step for told in opt.verdicts if told.accepted)])
                except WorkerLost:
                    acknowledged.append(newest)
                    model = opt.reform(model)
                    acknowledged.append(opt.step)
            _await_the_end(goes_on, has_ended)
    except NotSupported:
        _await_the_end(goes_on, has_ended)
        return "lost"
    except Excluded as error:
        try:
            opt.update(model, constant_gradient())
        except (Excluded, ox.StateError) as again:
            has_ended.touch()
            return [str(error), type(again).__name__]
    return [acknowledged, opt.communicator.size, opt.state_dict()["step"], digest(opt.state_dict()["slots"])]


def _await_the_end(goes_on: Path, has_ended: Path) -> None:
    goes_on.touch()
    end = time.monotonic() + DEADLINE
    while not has_ended.exists() and time.monotonic() < end:
        time.sleep(0.01)


def check_fenced(results: list[Any]) -> None:
    """The stopped worker has the named error, and the two others the slots of one worker without a fault."""
    fenced = [result for result in results if isinstance(result[0], str)]
    others = [result for result in results if not isinstance(result[0], str)]
    assert len(fenced) == 1 and "the others have excluded it" in fenced[0][0], results
    assert fenced[0][1] in ("Excluded", "StateError")
    assert [size for _, size, *_ in others] == [2, 2], results
    for acknowledged, _, steps, found in others:
        assert acknowledged[1] >= acknowledged[0] and len(acknowledged) == 2
        assert found == undisturbed(steps)


def digest(slots: Any) -> str:
    """A digest of slots by key path and name."""
    found = hashlib.sha256()
    for path in sorted(slots):
        for name in sorted(slots[path]):
            found.update(f"{path} {name} {np.asarray(slots[path][name]).tobytes().hex()}".encode())
    return found.hexdigest()


def undisturbed(steps: int, make: Any = None) -> str:
    """The digest of the slots of one worker after so many steps by the gradient of `survive`."""
    opt: Any = ox.optim.Adam(0.01) if make is None else make()
    model = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}
    for _ in range(steps):
        model = opt.update(model, constant_gradient())
    return digest(opt.state_dict()["slots"])


def save_on_a_full_disk(comm: Any, folder: str) -> list[Any]:
    """Rank 0 saves, and saves again with a limit on the size of files; the training goes on.

    Returns the error, whether the first file is kept, the names of the files, and whether the kept file continues to the same bits.
    """
    file, model, found = Path(folder) / "state.safetensors", {"w": np.zeros(50_000)}, []
    with distributed.SyncReplicas(ox.optim.Adam(0.1), 2, communicator=comm) as opt:
        for step in range(4):
            if comm.rank == 0 and step == 2:
                opt.save(file)
                whole, kept = file.read_bytes(), model["w"].copy()
            if comm.rank == 0 and step == 3:
                found = [_error_of_save(opt, file), file.read_bytes() == whole, os.listdir(folder)]
            opt.update(model, {"w": np.full(50_000, 1.0 + step)})
    if comm.rank == 0:
        resumed, own = distributed.SyncReplicas(ox.optim.Adam(0.1), 1, communicator=SingleWorker()), {"w": kept}
        resumed.load(file)
        for step in (2, 3):
            resumed.update(own, {"w": np.full(50_000, 1.0 + step)})
        found.append(own["w"].tobytes() == model["w"].tobytes())
    return [comm.rank, *found]


FULL_DISK = [[0, "OSError: File too large", True, ["state.safetensors"], True], [1]]
"""The results of `save_on_a_full_disk`."""


def _error_of_save(opt: Any, file: Path) -> str:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        opt.save(file)
    except OSError as error:
        return f"OSError: {'File too large' if 'File too large' in str(error) else error}"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return "saved"


def straggle(comm: Any) -> list[Any]:
    """Rank 2 computes one gradient while the others take ten steps, by two gradients each, without it.

    Returns the accepted gradients of this worker, and the reasons for which others were dropped.
    """
    model, accepted, reasons = {"w": np.zeros(10)}, 0, []
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 2, 3, communicator=comm) as opt:
        opt.join(model)
        comm.all_reduce([np.zeros(1)])  # so that no worker joins after the last step
        if comm.rank == 2:
            assert comm.recv_any([np.empty(1)], tag=9) is not None
        while accepted < 10 and not reasons:
            opt.update(model, {"w": np.ones(10)})
            accepted += sum(told.accepted for told in opt.verdicts)
            reasons += [told.reason for told in opt.verdicts if not told.accepted]
        if comm.rank == 0:
            comm.send(2, Header(tag=9), [np.zeros(1)])
    return [comm.rank, accepted, reasons]


def stopped_coordinator(comm: Any) -> list[int]:
    """The process of the coordinator is stopped in training, and continued; returns rank and accepted gradients."""
    model, accepted = {"w": np.zeros(30_000)}, 0
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 3, 3, communicator=comm) as opt:
        opt.join(model)
        for step in range(6):
            if comm.rank == 0 and step == 3:
                stop_and_continue(comm)
            opt.update(model, {"w": np.ones(30_000)})
            accepted += sum(told.accepted for told in opt.verdicts)
    assert np.allclose(model["w"], -0.6)
    return [comm.rank, accepted]
