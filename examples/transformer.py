"""A language model that learns to count: a transformer reads numbers in words, letter by letter, and continues them.

    python examples/transformer.py [seed]

The text is made here, and is endless: "... ninety-eight, ninety-nine, zero, one, two, ...". The model sees 64 letters at a
time, and for each of them guesses the next. Fails if it goes wrong after more than 5 of the 100 numbers.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import oxigrad as ox
from oxigrad import xp

STEPS = 500
BATCH = 32
CONTEXT = 64
WIDTH = 64
HEADS = 4
LAYERS = 2
PEAK = 3e-3
BEGIN = "eight, nine, "

# --- the text ---------------------------------------------------------------------------------------------------------

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
ONES = [*ONES.split(), "eighteen", "nineteen"]
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def words(number: int) -> str:
    """A number below a hundred, in English."""
    if number < 20:
        return ONES[number]
    tens, ones = TENS[number // 10 - 2], number % 10
    return f"{tens}-{ONES[ones]}" if ones else tens


NUMBERS = [f"{words(number)}, " for number in range(100)]
TEXT = "".join(NUMBERS)
LETTERS = sorted(set(TEXT))
TOKENS = np.array([LETTERS.index(letter) for letter in TEXT])


def batches(generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Pieces of the text of one letter more than the model sees, from anywhere, of shape (BATCH, CONTEXT + 1)."""
    while True:
        starts = generator.integers(len(TEXT), size=(BATCH, 1))
        yield TOKENS[(starts + np.arange(CONTEXT + 1)) % len(TEXT)]


# --- the model --------------------------------------------------------------------------------------------------------


@dataclass
class Norm:
    """Scales each vector to a mean of 0 and a variance of 1, and then as it has learned."""

    gain: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        x = x - xp.mean(x, axis=-1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * self.gain + self.bias


@dataclass
class Attention:
    """Each place asks all places before it: its query times their keys says how much it takes of their values."""

    queries: Any
    keys: Any
    values: Any
    output: Any

    def __call__(self, x: Any) -> Any:
        batch, length, width = x.shape

        def heads(weight: Any) -> Any:
            return xp.permute_dims(xp.reshape(x @ weight, (batch, length, HEADS, width // HEADS)), (0, 2, 1, 3))

        scores = heads(self.queries) @ xp.matrix_transpose(heads(self.keys)) / (width // HEADS) ** 0.5
        is_later = np.triu(np.ones((length, length), bool), 1)
        shares = xp.special.softmax(xp.where(is_later, -np.inf, scores), axis=-1)
        mixed = xp.permute_dims(shares @ heads(self.values), (0, 2, 1, 3))
        return xp.reshape(mixed, (batch, length, width)) @ self.output


@dataclass
class Perceptron:
    """Two layers, of which the one between is four times as wide."""

    up: Any
    down: Any

    def __call__(self, x: Any) -> Any:
        return xp.maximum(x @ self.up, 0.0) @ self.down


@dataclass
class Block:
    """Attention between the places, then a perceptron at each of them; both add to what was there."""

    norms: tuple[Norm, Norm]
    attention: Attention
    perceptron: Perceptron

    def __call__(self, x: Any) -> Any:
        x = x + self.attention(self.norms[0](x))
        return x + self.perceptron(self.norms[1](x))


@dataclass
class Transformer:
    """From letters (as numbers) to a score for each letter that may come next, at each place (Vaswani et al. 2017)."""

    letters: Any
    places: Any
    blocks: list[Block]
    norm: Norm
    head: Any

    def __call__(self, tokens: np.ndarray) -> Any:
        x = self.letters[tokens] + self.places[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.head


def new_model(generator: np.random.Generator) -> Transformer:
    """Normal weights; those of residual branches are scaled down with the number of layers."""

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (generator.standard_normal(shape) * scale / shape[0] ** 0.5).astype(np.float32)

    def norm() -> Norm:
        return Norm(np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32))

    def block() -> Block:
        added = (2 * LAYERS) ** -0.5
        square: Callable[[], np.ndarray] = lambda: normal(WIDTH, WIDTH)  # noqa: E731
        attention = Attention(square(), square(), square(), normal(WIDTH, WIDTH, scale=added))
        return Block(
            (norm(), norm()), attention, Perceptron(normal(WIDTH, 4 * WIDTH), normal(4 * WIDTH, WIDTH, scale=added))
        )

    letters, places = normal(len(LETTERS), WIDTH), normal(CONTEXT, WIDTH)
    return Transformer(letters, places, [block() for _ in range(LAYERS)], norm(), normal(WIDTH, len(LETTERS)))


def cross_entropy(model: Transformer, tokens: np.ndarray) -> Any:
    """The mean of -log(probability of the letter that comes next)."""
    scores = model(tokens[:, :-1])
    right = xp.take_along_axis(scores, tokens[:, 1:, None], axis=-1)
    return xp.mean(xp.special.logsumexp(scores, axis=-1, keepdims=True) - right)


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    seed: int, steps: int = STEPS, watch: Callable[[int, float, Transformer], None] | None = None, **options: Any
) -> tuple[Transformer, ox.optim.Optimizer]:
    """A trained model, and its optimizer with these ``options``; ``watch`` is called with each step and its loss."""
    generator = np.random.default_rng(seed)
    model = new_model(generator)
    schedule = ox.schedules.warmup_cosine(PEAK, warmup=steps // 10, steps=steps)
    optimizer = ox.optim.AdamW(learning_rate=schedule, weight_decay=0.01, **options)
    for step, tokens in enumerate(itertools.islice(batches(generator), steps), 1):
        loss = float(optimizer.minimize(lambda model, tokens=tokens: cross_entropy(model, tokens), model))
        if watch:
            watch(step, loss, model)
    return model, optimizer


def continued(model: Transformer, text: str, letters: int) -> str:
    """The text and so many letters more, each the one that the model finds most probable."""
    tokens = [LETTERS.index(letter) for letter in text]
    for _ in range(letters):
        scores = model(np.array([tokens[-CONTEXT:]]))
        tokens.append(int(np.argmax(scores[0, -1])))
    return "".join(LETTERS[token] for token in tokens)


def mistakes(model: Transformer) -> list[str]:
    """The numbers after which it does not say the next one, given what comes before."""
    ends = np.cumsum([len(number) for number in NUMBERS])
    places = (ends[:, None] + np.arange(-CONTEXT - 1, 0)) % len(TEXT)
    is_right = np.argmax(model(TOKENS[places[:, :-1]]), axis=-1) == TOKENS[places[:, 1:]]
    lengths = [len(number) for number in NUMBERS]
    goes_on = [bool(right[-length:].all()) for right, length in zip(is_right, lengths, strict=True)]
    return [words((number - 1) % 100) for number, right in enumerate(goes_on) if not right]


def report(step: int, loss: float, model: Transformer) -> None:
    """Prints how it counts so far, every hundred steps."""
    if step == 1 or step % 100 == 0:
        print(f"step {step:3d}  loss {loss:.3f}  {continued(model, BEGIN, 60)}")


def main(seed: int = 0, steps: int = STEPS) -> list[str]:
    """Trains a model and shows how it learns; returns the numbers after which it goes wrong."""
    begin = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):  # one thread multiplies matrices this small as fast as two
        model, _ = train(seed, steps, report)
    wrong = mistakes(model)
    size = sum(p.size for p in ox.tree.parameters(model).values())
    print(f"{size:,} parameters, {steps} steps in {time.perf_counter() - begin:.1f} s")
    print(f"goes on right after {100 - len(wrong)} of 100 numbers" + (f", but not after {wrong[0]}" if wrong else ""))
    return wrong


if __name__ == "__main__":
    sys.exit(len(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)) > 5)
