"""The sizes of rows: full for measurements, reduced for a test that the rows run.

Rows read the sizes when their files are imported and when they are built: call `shrink` before both.
"""

# A hundred thousand random numbers still have the shares that `rows/rule.py` checks.
_limits: dict[str, float] = {"numbers": float("inf"), "items": float("inf")}


def shrink() -> None:
    """Reduces all sizes from now on."""
    _limits.update(numbers=100_000, items=20)


def numbers(count: int) -> int:
    """The length of an array: `count`, or fewer."""
    return int(min(count, _limits["numbers"]))


def items(count: int) -> int:
    """The number of arrays, layers or steps: `count`, or fewer."""
    return int(min(count, _limits["items"]))


def shapes(shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The parameters of a model, or fewer and smaller ones."""
    if _limits["numbers"] == float("inf"):
        return shapes
    return [tuple(min(extent, 16) for extent in shape) for shape in shapes[: items(len(shapes))]]


def is_small() -> bool:
    """Whether `shrink` was called."""
    return _limits["numbers"] != float("inf")
