"""The cost of the package: the time of ``import oxigrad`` in a fresh interpreter, and the size of the wheel."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

from measure import Contestant, Goal, Outcome, Ready, Row, Settings, Verdict, WrongResultError

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("target/wheels", "dist", "target/compare/checkout/wheels")


def interpreter(statement: str) -> Ready:
    """A fresh interpreter that runs one statement; the first run compiles the modules to bytecode, and fills the file cache."""
    command = [sys.executable, "-c", statement]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def call() -> None:
        subprocess.run(command, check=True, capture_output=True, env=environment)

    def check() -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if "ModuleNotFoundError" in done.stderr:
            raise ImportError(done.stderr.splitlines()[-1])
        if done.returncode != 0:
            raise WrongResultError(done.stderr)

    return Ready(call, check)


def imports() -> list[Contestant]:
    """Everybody, without what a bare interpreter takes."""
    modules = ("numpy", "autograd", "jax", "torch")
    return [
        Contestant("import oxigrad", "ours", lambda: interpreter("import oxigrad")),
        *(Contestant(f"import {m}", "peer", lambda m=m: interpreter(f"import {m}")) for m in modules),
        Contestant("bare interpreter (subtracted)", "baseline", lambda: interpreter("pass")),
    ]


@dataclasses.dataclass(frozen=True)
class Size:
    """A row that weighs a file."""

    name: str
    limit: int

    def run(self, settings: Settings) -> Outcome:
        """The size of the newest wheel, built with maturin where there is none."""
        wheel = newest() or build()
        if wheel is None:
            verdict = Verdict(self.name, f"below {self.limit / 1e6:g} MB", "no wheel, no maturin", "not measured")
            return Outcome([self.name, "  no wheel, and no maturin to build one"], [verdict], {"row": self.name})
        size = wheel.stat().st_size
        found = f"{size / 1e6:.2f} MB"
        verdict = Verdict(
            self.name, f"below {self.limit / 1e6:g} MB", found, "reached" if size < self.limit else "MISSED"
        )
        lines = [self.name, f"  ours      {wheel.name:<34} {found:>10}"]
        return Outcome(lines, [verdict], {"row": self.name, "wheel": wheel.name, "bytes": size})


def newest() -> Path | None:
    """The wheel that was built last."""
    wheels = [wheel for place in PLACES for wheel in (ROOT / place).glob("oxigrad-*.whl")]
    return max(wheels, key=lambda wheel: wheel.stat().st_mtime, default=None)


def build() -> Path | None:
    """A release wheel; None without maturin."""
    beside = Path(sys.executable).with_name("maturin")
    maturin = str(beside) if beside.exists() else shutil.which("maturin")
    if maturin is None:
        return None
    subprocess.run([maturin, "build", "--release", "--interpreter", sys.executable], cwd=ROOT, check=True)
    return newest()


ROWS = [Row("import", imports, (Goal(1 / 1.5, "import numpy"),), samples=21, warm=False), Size("wheel", 3_000_000)]
