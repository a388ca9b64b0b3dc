"""Several workers learn to read handwritten digits together, by any method on any engine.

    python examples/distributed.py --engine threads --method model_average
    python examples/distributed.py --engine all --method all --seeds 3 --picture output/distributed.png

Each worker has its share of the 1,437 training images; the accuracy is that of worker 0 on 360 images that no worker has seen. The
engines mpi and torch are processes, which this program starts itself; on a cluster, start it as
``python -m oxigrad.launch -n 4 --hostfile hosts examples/distributed.py --engine mpi`` or by torchrun. Prints what became of the gradients of each
worker, and one table of all runs. Fails if a method reads fewer than 97 of 100 digits right, in the mean over the seeds.
"""

import argparse
import dataclasses
import functools
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import oxigrad as ox
from oxigrad import distributed, optim, schedules, xp

GOAL = 0.97
WORKERS = 4
BATCH = 32
EPOCHS = 60
ENGINES = ("threads", "mpi", "ray", "torch")
# Seconds after which a worker that waits for another one gives up.
TIMEOUT = 120.0

Model = dict[str, Any]


# --- the model and the data ---------------------------------------------------------------------------------------------


def new_model(seed: int) -> Model:
    """64 pixels, 128 hidden units, 10 digits; the same on every worker."""
    generator = np.random.default_rng(seed)
    sizes = (64, 128, 10)

    def dense(inputs: int, outputs: int) -> Model:
        weight = generator.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)
        return {"weight": weight.astype(np.float32), "bias": np.zeros(outputs, np.float32)}

    return {f"layer{k}": dense(*pair) for k, pair in enumerate(itertools.pairwise(sizes))}


def scores(model: Model, images: np.ndarray) -> Any:
    """A score for each digit."""
    hidden = xp.maximum(images @ model["layer0"]["weight"] + model["layer0"]["bias"], 0.0)
    return hidden @ model["layer1"]["weight"] + model["layer1"]["bias"]


def cross_entropy(images: np.ndarray, digits: np.ndarray, model: Model) -> Any:
    """The mean of -log(probability of the right digit)."""
    found = scores(model, images)
    right = xp.take_along_axis(found, digits[:, None], axis=1)[:, 0]
    return xp.mean(xp.special.logsumexp(found, axis=1) - right)


class Data(NamedTuple):
    """Images of shape (n, 64), from 0 to 1, and the digit that each one shows."""

    images: np.ndarray
    digits: np.ndarray


def load() -> tuple[Data, Data]:
    """The digits, four fifths for training and one fifth for testing."""
    pixels, digits = map(np.asarray, load_digits(return_X_y=True))
    images = np.asarray(pixels, np.float32) / 16
    train, test = train_test_split(np.arange(len(images)), test_size=0.2, stratify=digits, random_state=0)
    return Data(images[train], digits[train]), Data(images[test], digits[test])


def batches(data: Data, rank: int, size: int, epochs: int, seed: int) -> Iterator[Data]:
    """The worker's share of the data in a new order each epoch, a batch at a time."""
    generator = np.random.default_rng([seed, rank])
    own = np.arange(rank, len(data.digits) - len(data.digits) % size, size)  # as many for every worker
    for _ in range(epochs):
        order = generator.permutation(own)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield Data(moved(generator, data.images[chosen]), data.digits[chosen])


def moved(generator: np.random.Generator, images: np.ndarray) -> np.ndarray:
    """The images, three of ten of them moved at random, by up to a pixel."""
    count = len(images)
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = np.where(generator.random(count) < 0.3, generator.integers(3, size=(2, count)), 1)
    rows, columns = (start[:, None] + np.arange(8) for start in (down, right))
    return padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]].reshape(-1, 64)


# --- the methods --------------------------------------------------------------------------------------------------------


def warm(peak: float, steps: int) -> Any:
    """A learning rate that rises over a tenth of the steps, and falls as a cosine."""
    return schedules.warmup_cosine(peak, warmup=max(1, steps // 10), steps=steps)


def adam(peak: float, steps: int) -> Any:
    """The base optimizer of most methods."""
    return optim.AdamW(warm(peak, steps), weight_decay=0.05)


def lars(steps: int) -> Any:
    """LARS, with biases exempt from the trust ratio and the weight decay, as in the paper."""
    weights = optim.LARS(warm(10.0, steps), weight_decay=1e-4, norms="separate")
    return optim.partition({"*bias": optim.SGD(warm(0.2, steps), momentum=0.9), "*": weights})


# Each method makes a wrapper optimizer, given the updates of each worker and the number of workers.
METHODS: dict[str, Callable[[int, int], Any]] = {
    # The mean gradient of all workers, in buckets.
    "data_parallel": lambda steps, size: distributed.DataParallel(adam(0.02, steps)),
    # The first three gradients of each step; the fourth worker is a backup.
    "sync_replicas": lambda steps, size: distributed.SyncReplicas(adam(0.02, steps), max(1, size - 1), size),
    # A step after every second gradient, with a learning rate that falls with staleness.
    "softsync": lambda steps, size: distributed.Softsync(adam(0.01, steps * size // 2), 2),
    # A step after every gradient that is not too stale.
    "drop_stale": lambda steps, size: distributed.DropStale(adam(0.005, steps * size), size),
    # The mean of the models every 10 updates.
    "model_average": lambda steps, size: distributed.ModelAverage(adam(0.02, steps), 10),
    # The same by blocks with momentum.
    "block_momentum": lambda steps, size: distributed.ModelAverage(adam(0.01, steps), 10, block_momentum=0.5),
    # DiLoCo: an outer optimizer with Nesterov momentum.
    "diloco": lambda steps, size: distributed.ModelAverage(
        adam(0.01, steps), 20, outer=optim.SGD(0.7, momentum=0.9, nesterov=True)
    ),
    # Streaming DiLoCo: half of the parameters at a time, in 8 bits, merged two updates later.
    "streaming_diloco": lambda steps, size: distributed.ModelAverage(
        adam(0.01, steps),
        20,
        outer=optim.SGD(0.7, momentum=0.9, nesterov=True),
        fragments=2,
        delay=2,
        exchange="8bit",
    ),
    # An elastic force between each worker and a centre, when each is ready, or at once.
    "elastic": lambda steps, size: distributed.ElasticAverage(adam(0.02, steps), 4, moving_rate=0.2),
    "elastic_sync": lambda steps, size: distributed.ElasticAverage(
        adam(0.02, steps), 4, moving_rate=0.2, synchronous=True
    ),
    # Only the largest elements of large gradients; here one of twenty.
    "compression": lambda steps, size: distributed.DeepGradientCompression(
        optim.SGD(warm(0.2, steps)), 0.05, momentum=0.9, min_size=1000
    ),
    # Gradients preconditioned by Kronecker factors.
    "kfac": lambda steps, size: distributed.KFAC(
        optim.SGD(warm(0.05, steps), momentum=0.9),
        damping=0.03,
        kl_clip=0.01,
        factor_update_steps=2,
        inverse_update_steps=10,
        memory="hybrid_opt",
    ),
    # Two local batches a step, by LARS.
    "large_batch": lambda steps, size: distributed.LargeBatch(lars(steps // 2), local_batches=2),
}


# --- one run ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Result:
    """The result of one worker: its gradients by what became of them, messages that it refused, and its accuracy on the test images."""

    method: str
    seed: int
    rank: int
    accuracy: float
    seconds: float
    bytes_sent: int
    accepted: int
    dropped: int
    stale: dict[str, int]
    refused: dict[str, int]


def train(method: str, seed: int, epochs: int, bar: bool, comm: Any) -> Result:
    """Trains by one method, as one worker; the seed is that of the first parameters and of the order of the data."""
    data, test = load()
    steps = epochs * (len(data.digits) // comm.size // BATCH)
    model, opt = new_model(seed), METHODS[method](steps, comm.size)
    sent, refused, begin = comm.bytes_sent, Counter(comm.refused), time.perf_counter()
    shown = bar and comm.rank == 0
    own_batches = batches(data, comm.rank, comm.size, epochs, seed)
    with opt:
        for batch in tqdm(own_batches, method, steps, disable=not shown, unit="step", leave=False):
            opt.minimize(functools.partial(cross_entropy, *batch), model)
        if isinstance(opt, distributed.ModelAverage):
            model = opt.average(model)
        elif isinstance(opt, distributed.ElasticAverage):
            model = opt.leave(model)
            for path, array in opt.centre().items():
                model = ox.tree.path(path, model).set(model, array)
    comm.all_reduce([np.zeros(1)])  # all have ended
    seconds = time.perf_counter() - begin
    own = next(report for report in opt.report() if report.rank == comm.rank)
    right = np.argmax(scores(model, test.images), axis=1) == test.digits
    stale = {str(staleness): count for staleness, count in own.stale.items() if staleness}
    accuracy, sent = float(np.mean(right)), comm.bytes_sent - sent
    refused = dict(Counter(comm.refused) - refused)
    return Result(method, seed, comm.rank, accuracy, seconds, sent, own.accepted, own.dropped, stale, refused)


def work(methods: Sequence[str], seeds: int, epochs: int, bar: bool, comm: Any) -> list[dict[str, Any]]:
    """All runs of one worker, as plain data."""
    with threadpool_limits(1):
        runs = itertools.product(methods, range(seeds))
        return [dataclasses.asdict(train(method, seed, epochs, bar, comm)) for method, seed in runs]


# --- engines ------------------------------------------------------------------------------------------------------------


def started() -> int:
    """The number of workers of which this process is one, as mpiexec or torchrun have started them; 0 otherwise."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    return int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE") or 0)


def available() -> list[str]:
    """The engines whose libraries are installed."""
    needed = {"threads": "numpy", "mpi": "mpi4py", "ray": "ray", "torch": "torch"}
    return [engine for engine in ENGINES if importlib.util.find_spec(needed[engine])]


def run(engine: str, methods: Sequence[str], workers: int, seeds: int, epochs: int) -> list[list[Result]]:
    """The results of each worker, a list for each method and seed."""
    if engine in ("mpi", "torch"):
        found = run_processes(engine, methods, workers, seeds, epochs)
    else:
        bar = engine == "threads" and sys.stderr.isatty()
        job = functools.partial(work, methods, seeds, epochs, bar)
        found = distributed.run(job, engine=engine, workers=workers, timeout=TIMEOUT)
    return [[Result(**each) for each in results] for results in zip(*found, strict=True)]


def run_processes(
    engine: str, methods: Sequence[str], workers: int, seeds: int, epochs: int
) -> list[list[dict[str, Any]]]:
    """Starts the workers as processes; each writes its results to a file."""
    launchers = {
        "mpi": ["-m", "oxigrad.launch", "--quiet", "-n", str(workers)],
        "torch": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers)],
    }
    with tempfile.TemporaryDirectory() as folder:
        own = ["--engine", engine, "--method", ",".join(methods), "--seeds", str(seeds), "--epochs", str(epochs)]
        own += ["--results", folder]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        line = [sys.executable, *launchers[engine], str(Path(__file__).resolve()), *own]
        subprocess.run(line, env=environment, check=True)  # noqa: S603 - this program
        return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(workers)]


def be_worker(engine: str, methods: Sequence[str], seeds: int, epochs: int, folder: Path | None) -> None:
    """Runs as one of the processes of an engine, and writes the results, or prints them without a folder."""
    bar = sys.stderr.isatty()
    results = distributed.run(
        functools.partial(work, methods, seeds, epochs, bar), engine=engine, workers=started(), timeout=TIMEOUT
    )
    for rank, own in enumerate(results):
        if own is not None and folder is not None:
            (folder / f"{rank}.json").write_text(json.dumps(own))
        elif own is not None:
            print("\n".join(map(summary, (Result(**each) for each in own))), flush=True)


# --- the report ---------------------------------------------------------------------------------------------------------


def summary(result: Result) -> str:
    """The counts of the gradients of one worker, as a line."""
    stale = ", ".join(f"{count} by {staleness}" for staleness, count in sorted(result.stale.items())) or "none"
    refused = ", ".join(f"{count} by {reason}" for reason, count in sorted(result.refused.items())) or "none"
    return (
        f"  worker {result.rank}: {result.accepted} gradients accepted, {result.dropped} dropped, stale: {stale}; "
        f"messages refused: {refused}; {result.bytes_sent / 1e6:.2f} MB sent, accuracy {result.accuracy:.4f}"
    )


def table(rows: Sequence[tuple[str, list[Result]]]) -> str:
    """One line for each engine and method: means over seeds, and the lowest accuracy."""
    lines = [("engine", "method", "accuracy", "lowest", "seconds", "MB sent", "dropped", "")]
    for (engine, method), runs in by_method(rows).items():
        accuracies = [results[0].accuracy for results in runs]
        lines.append(
            (
                engine,
                method,
                f"{np.mean(accuracies):.4f}",
                f"{min(accuracies):.4f}",
                f"{np.mean([max(each.seconds for each in results) for results in runs]):.1f}",
                f"{np.mean([*map(megabytes, runs)]):.2f}",
                f"{np.mean([sum(each.dropped for each in results) for results in runs]):g}",
                "" if np.mean(accuracies) >= GOAL else f"below {GOAL}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def by_method(rows: Sequence[tuple[str, list[Result]]]) -> dict[tuple[str, str], list[list[Result]]]:
    """The runs of each engine and method, one for each seed."""
    found: dict[tuple[str, str], list[list[Result]]] = {}
    for engine, results in rows:
        found.setdefault((engine, results[0].method), []).append(results)
    return found


def draw(rows: Sequence[tuple[str, list[Result]]], path: Path) -> None:
    """Draws the errors of each method beside what its workers send: bars from zero are means over seeds, and points are runs."""
    runs = by_method(rows)
    engines, methods = (list(dict.fromkeys(names)) for names in zip(*runs, strict=True))
    seeds = max(map(len, runs.values()))
    figure = Figure(figsize=(9, 1.2 + 0.4 * len(methods)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    height = 0.8 / len(engines)
    for number, engine in enumerate(engines):
        own = {method: found for (name, method), found in runs.items() if name == engine}
        places = [methods.index(method) + (number - (len(engines) - 1) / 2) * height for method in own]
        errors = [[100 * (1 - results[0].accuracy) for results in found] for found in own.values()]
        sent = [[*map(megabytes, found)] for found in own.values()]
        for ax, numbers in ((left, errors), (right, sent)):
            ax.barh(places, [*map(np.mean, numbers)], height, label=f"engine {engine}" if ax is left else None)
            if seeds > 1:
                label = f"each of {seeds} seeds" if (ax, engine) == (left, engines[-1]) else None
                points = [[place] * len(each) for place, each in zip(places, numbers, strict=True)]
                ax.scatter([*itertools.chain(*numbers)], [*itertools.chain(*points)], 5, "black", zorder=3, label=label)
    left.axvline(100 * (1 - GOAL), color="black", linestyle=":", label=f"goal: fewer than {100 * (1 - GOAL):.0f} %")
    left.set(
        title="Error on 360 test images", xlabel="%", xlim=(0, None), yticks=range(len(methods)), yticklabels=methods
    )
    left.invert_yaxis()
    right.set(title="Sent by all workers", xlabel="MB")
    most = {method: max(megabytes(r) for _, r in rows if r[0].method == method) for method in methods}  # of any run
    right.set_xlim(0, 1.15 * max(1e-3, *most.values()))
    for place, method in enumerate(methods):
        right.annotate(f"{most[method]:.3g}", (most[method], place), (3, 0), textcoords="offset points", va="center")
    figure.legend(loc="outside lower center", ncols=len(engines) + 2, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def megabytes(results: Sequence[Result]) -> float:
    """The megabytes that all workers of a run sent."""
    return sum(each.bytes_sent for each in results) / 1e6


def chosen(given: str, names: Sequence[str], what: str) -> list[str]:
    """The names in a list separated by commas; "all" for all."""
    found = list(names) if given == "all" else given.split(",")
    if unknown := [name for name in found if name not in names]:
        raise SystemExit(f"{what} is {unknown[0]!r}: expected all, or some of {', '.join(names)}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Runs what was asked for; returns the exit status, 1 where an accuracy is below the goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--engine", default="threads", help=f"{', '.join(ENGINES)}, several, or all that are installed")
    parser.add_argument("--method", default="all", help=f"{', '.join(METHODS)}, several, or all")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each method, by as many seeds")
    parser.add_argument("--epochs", type=int, default=EPOCHS, metavar="N")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draws the table")
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    methods = chosen(options.method, list(METHODS), "--method")
    engines = available() if options.engine == "all" else chosen(options.engine, ENGINES, "--engine")
    if started():
        be_worker(engines[0], methods, options.seeds, options.epochs, options.results)
        return 0
    rows: list[tuple[str, list[Result]]] = []
    for engine in engines:
        for results in run(engine, methods, options.workers, options.seeds, options.epochs):
            print(f"{engine}, {results[0].method}, seed {results[0].seed}")
            print("\n".join(map(summary, results)), flush=True)
            rows.append((engine, results))
    print("\n" + table(rows))
    if options.picture:
        draw(rows, options.picture)
        print(f"picture: {options.picture}")
    return int(any(np.mean([results[0].accuracy for results in runs]) < GOAL for runs in by_method(rows).values()))


if __name__ == "__main__":
    sys.exit(main())
