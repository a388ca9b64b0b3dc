"""The decision between two versions from the ratios of their times, one ratio a round."""

import dataclasses
import enum
import math
import statistics
from collections.abc import Sequence

# A change below this is none: two builds of the same sources differ by as much, from where the linker puts their loops.
LEAST = 0.05
# A change must exceed so many median absolute deviations of the ratios.
DEVIATIONS = 6
# Below so many ratios, their deviation says nothing.
FEWEST = 5
# The standard error of a median of n normally distributed numbers is sqrt(pi / 2) sigma / sqrt(n), and sigma is 1.4826 MAD.
ERROR_OF_MEDIAN = math.sqrt(math.pi / 2) * 1.4826


class Answer(enum.StrEnum):
    """The outcome of a comparison."""

    SLOWER = "SLOWER"
    FASTER = "faster"
    SAME = "same"
    CANNOT_TELL = "cannot tell"


@dataclasses.dataclass(frozen=True)
class Decision:
    """The median of the ratios new / base, the limit that a change must exceed, and the answer."""

    ratio: float
    limit: float
    answer: Answer


def deviation(values: Sequence[float]) -> float:
    """The median absolute deviation from the median (MAD)."""
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)


def decide(ratios: Sequence[float]) -> Decision:
    """Decides whether the new version is slower, from the ratios new / base of each round.

    It is slower or faster where the median ratio differs from 1 by more than max(5 %, 6 MAD). It is the same only where
    the median and three of its standard errors lie within 5 %. Everything else is "cannot tell", which no ratios, too few,
    and ratios that spread too widely are as well.
    """
    if not ratios:
        return Decision(math.nan, math.nan, Answer.CANNOT_TELL)
    ratio, spread = statistics.median(ratios), deviation(ratios)
    limit = max(LEAST, DEVIATIONS * spread)
    change, error = ratio - 1, 3 * ERROR_OF_MEDIAN * spread / math.sqrt(len(ratios))
    answer = Answer.CANNOT_TELL
    if len(ratios) >= FEWEST:
        if abs(change) > limit:
            answer = Answer.SLOWER if change > 0 else Answer.FASTER
        elif abs(change) + error <= LEAST:
            answer = Answer.SAME
    return Decision(ratio, limit, answer)


def confirm(first: Decision, second: Decision) -> Decision:
    """The second of two measurements of a row that was slower in the first: slower only where both say so."""
    if first.answer is Answer.SLOWER and second.answer is not Answer.SLOWER:
        return dataclasses.replace(second, answer=Answer.CANNOT_TELL)
    return second
