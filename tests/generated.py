"""Prints the shipped rules as native code for the core: ``python tests/generated.py`` writes rust/core/src/generated.rs."""

from pathlib import Path

from oxigrad import _core, optim, testing

PATH = Path(__file__).parent.parent / "rust" / "core" / "src" / "generated.rs"


def text() -> str:
    """What the file must hold: a kernel for each shipped rule and flag, and the ceiling of the benchmarks."""
    shipped = {
        "Sgd": optim.SGD(),
        "Momentum": optim.Momentum(),
        "Nesterov": optim.Momentum(nesterov=True),
        "Adam": optim.Adam(),
        "AdamW": optim.AdamW(),
        "Stream": optim.define(testing.stream)(),
    }
    return _core.print_generated([(name, optimizer.program) for name, optimizer in shipped.items()])


if __name__ == "__main__":
    PATH.write_text(text())
