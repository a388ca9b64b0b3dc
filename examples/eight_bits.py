"""8-bit moments compared with float32 moments: two problems, five seeds each.

    python examples/eight_bits.py

Trains the classifier of digits.py and the transformer of transformer.py from each seed twice: the same model, the same
batches, only ``slot_dtype`` differs. The loss at the end is that of data not trained on. Seeds alone spread it; what eight bits do is
the difference of the means, told in its standard errors: up to two or so are noise. Fails if there are more than three.
"""

import itertools
import statistics
import sys
from collections.abc import Callable
from typing import Any

import digits
import numpy as np
import transformer
from threadpoolctl import threadpool_limits
from tqdm import trange

import oxigrad as ox

SEEDS = 5


def end_of_digits(seed: int, epochs: int = digits.EPOCHS, **options: Any) -> tuple[float, ox.optim.Optimizer]:
    """The loss of the classifier over the images to test on, and its optimizer, which has these ``options``."""
    generator = np.random.default_rng(seed)
    data, test = digits.load()
    model, history = digits.new_model(generator), digits.History()
    schedule = ox.schedules.warmup_cosine(digits.PEAK, warmup=epochs, steps=epochs * (len(data.digits) // digits.BATCH))
    optimizer = ox.optim.AdamW(learning_rate=schedule, weight_decay=0.05, **options)
    for _ in range(epochs):
        digits.train_epoch(model, optimizer, digits.batches(generator, data), history)
    return float(digits.cross_entropy(model, *test)), optimizer


def end_of_transformer(seed: int, steps: int = transformer.STEPS, **options: Any) -> tuple[float, ox.optim.Optimizer]:
    """The loss of the transformer over pieces of the text, and its optimizer, which has these ``options``."""
    model, optimizer = transformer.train(seed, steps, **options)
    pieces = itertools.islice(transformer.batches(np.random.default_rng(1000 + seed)), 8)
    return statistics.fmean(float(transformer.cross_entropy(model, tokens)) for tokens in pieces), optimizer


def compared(end: Callable[..., tuple[float, ox.optim.Optimizer]], seeds: int = SEEDS) -> dict[str, list[float]]:
    """The losses in the end from each seed, with moments of float32 and of eight bits."""
    losses: dict[str, list[float]] = {}
    with threadpool_limits(1, user_api="blas"):  # one thread multiplies matrices this small as fast as two
        for dtype in ("float32", "8bit"):
            numbers = trange(seeds, desc=f"{end.__name__}, {dtype}", unit="seed", disable=None, leave=False)
            losses[dtype] = [end(seed, slot_dtype=dtype)[0] for seed in numbers]
    return losses


def standard_errors(losses: dict[str, list[float]]) -> float:
    """Difference of the means in units of its standard error (Welch 1947)."""
    plain, eight = losses.values()
    error = (statistics.variance(plain) / len(plain) + statistics.variance(eight) / len(eight)) ** 0.5
    return (statistics.fmean(eight) - statistics.fmean(plain)) / error


def main(seeds: int = SEEDS) -> float:
    """Prints the table; returns the largest difference, in standard errors."""
    print(f"loss in the end, mean and standard deviation of {seeds} seeds")
    print(f"{'':<12} {'float32':>17} {'8bit':>17} {'difference':>11} {'standard errors':>16}")
    found = []
    for name, end in (("digits", end_of_digits), ("transformer", end_of_transformer)):
        losses = compared(end, seeds)
        cells = [f"{statistics.fmean(x):.4f} +- {statistics.stdev(x):.4f}" for x in losses.values()]
        difference = statistics.fmean(losses["8bit"]) - statistics.fmean(losses["float32"])
        found.append(standard_errors(losses))
        print(f"{name:<12} {cells[0]:>17} {cells[1]:>17} {difference:>+11.4f} {found[-1]:>+16.2f}", flush=True)
    return max(map(abs, found))


if __name__ == "__main__":
    sys.exit(main() > 3)
