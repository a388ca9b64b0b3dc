"""Instruction counts of hot paths, by callgrind: the only measurement that fails a change.

    python benches/counts.py [--record] [--require]

Counts `rust/core/benches/counts.rs` and compares with `benches/counts.json`, which says of which toolchain its counts are.
A count may be at most 1 % above. Counts change with the compiler, with valgrind and with the C library, and the file is of
one of each; so nothing fails by the file alone. Where the toolchain is another one, or a count is too high, the revision
that last changed the file is built and counted here, now, by this toolchain, and what it takes is the baseline.

A call of a function with a user's own rule (`benches/rule_calls.py`), with its derivative, may take `RULE_CALL`
instructions, `RULE_CALL_ON_ARRAYS` or `EQUATION_OF_ARRAYS`, for any toolchain.

--record writes the counts of the checkout to the file: a change that has a reason to take more instructions commits that
too. Without valgrind nothing is counted: the last line says SKIPPED, and --require makes that a failure.
"""

import argparse
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import wheels
from wheels import ROOT

FILE = ROOT / "benches" / "counts.json"
LIMIT = 0.01
# 8 microseconds, at two instructions a cycle and 4 GHz.
RULE_CALL = 64_000
# Calls on arrays, of which NumPy's own operations and the read-only view of the cotangent take a part.
RULE_CALL_ON_ARRAYS = 80_000
# Of an equation of arrays, whose residual is recorded and replayed: ten operations of NumPy's or of kernels.
EQUATION_OF_ARRAYS = 100_000


@dataclasses.dataclass(frozen=True)
class Counts:
    """Instructions of each benchmark, and the toolchain that they are of."""

    toolchain: dict[str, str]
    instructions: dict[str, int]

    @classmethod
    def read(cls, file: Path) -> "Counts":
        """The counts of a file."""
        data = json.loads(file.read_text(encoding="utf-8"))
        return cls(data["toolchain"], data["instructions"])

    def write(self, file: Path) -> None:
        """Writes them, one a line."""
        file.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n", encoding="utf-8")


def differences(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, float]:
    """The relative change of each count; raises `SystemExit` if the benchmarks are not the same."""
    if now.keys() != before.keys():
        odd = ", ".join(sorted(now.keys() ^ before.keys()))
        raise SystemExit(f"{FILE.name} and the benchmarks differ in {odd}: record them with --record")
    return {name: (now[name] - before[name]) / before[name] for name in now}


def table(now: Mapping[str, int], before: Mapping[str, int]) -> str:
    """Both counts and the change of each, one a line."""
    lines = [f"{'instructions':<34} {'baseline':>12} {'now':>12} {'change':>8}"]
    for name, change in differences(now, before).items():
        word = "  TOO MANY" if change > LIMIT else "  fewer: --record keeps it so" if change < -LIMIT else ""
        lines.append(f"{name:<34} {before[name]:>12,} {now[name]:>12,} {change:>+8.2%}{word}")
    return "\n".join(lines)


def is_within(now: Mapping[str, int], before: Mapping[str, int]) -> bool:
    """Whether no count is more than the limit above its baseline."""
    return all(change <= LIMIT for change in differences(now, before).values())


def parse(lines: Iterable[str]) -> dict[str, int]:
    """The counts of what gungraun prints as JSON, one benchmark a line."""
    counts = {}
    for line in lines:
        if line.startswith("{"):
            found = json.loads(line)
            (profile,) = (p for p in found["profiles"] if p["tool"] == "Callgrind")
            values = profile["data"]["total"]["metrics"]["Ir"]["values"]
            counts[f"{found['function_name']} {found['id']}"] = int(values["new"])
    return counts


def rule_calls() -> dict[str, int]:
    """The instructions of a call of each row of `rule_calls.py`, on this interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        # Each `getppid` begins a new file: those of even numbers have what was counted.
        valgrind = f"valgrind --tool=callgrind --dump-before=getppid --callgrind-out-file={folder}/out".split()
        command = [*valgrind, sys.executable, str(ROOT / "benches" / "rule_calls.py")]
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"the calls of rules do not run: {done.stderr}")
        printed = json.loads(done.stdout)
        texts = [Path(folder, f"out.{2 * k + 2}").read_text(encoding="utf-8") for k in range(len(printed["rows"]))]
    totals = [int(next(line for line in text.splitlines() if line.startswith("totals:")).split()[1]) for text in texts]
    return {name: total // printed["turns"] for name, total in zip(printed["rows"], totals, strict=True)}


def rules_table(calls: Mapping[str, int]) -> str:
    """The instructions of a call of each row, one a line."""
    lines = [f"{'a call with its derivative':<34} {'limit':>12} {'now':>12}"]
    for name, count in calls.items():
        lines.append(f"{name:<34} {limit(name):>12,} {count:>12,}{'  TOO MANY' * (count > limit(name))}")
    return "\n".join(lines)


def limit(name: str) -> int:
    """The instructions that a row of `rule_calls.py` may take."""
    if name == "implicit, array":
        return EQUATION_OF_ARRAYS
    return RULE_CALL_ON_ARRAYS if name.endswith("array") else RULE_CALL


# --- running ----------------------------------------------------------------------------------------------------------


def output(*command: str) -> str:
    """The standard output of a command."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def toolchain() -> dict[str, str]:
    """The environment that counts depend on. Of the processor, only whether valgrind may offer AVX2."""
    return {
        "rustc": output("rustc", "--version"),
        "valgrind": output("valgrind", "--version"),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
    }


def count(root: Path = ROOT) -> dict[str, int]:
    """Builds and counts the benchmarks of a source tree, below its own ``target``."""
    environment = os.environ | {"GUNGRAUN_RUNNER": str(runner(root))}
    environment.pop("CARGO_TARGET_DIR", None)
    cargo = "cargo bench --quiet --locked --package oxigrad-core --features benches --bench counts".split()
    options = ["--", "--output-format=json", "--nocapture"]
    done = subprocess.run([*cargo, *options], cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the benchmarks do not run: {done.stdout}")
    return parse(done.stdout.splitlines())


def runner(root: Path) -> Path:
    """The runner for valgrind, of the version in the lock file of a source tree; built if it is missing."""
    packages = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    version = next(package["version"] for package in packages if package["name"] == "gungraun")
    place = ROOT / "target" / "tools" / f"gungraun-{version}"
    program = place / "bin" / "gungraun-runner"
    if not program.exists():
        install = ["cargo", "install", "--quiet", "--locked", "--debug", "--root", str(place)]
        # It only starts valgrind and reads what that wrote: unoptimized it is built in half the time.
        environment = os.environ | {"CARGO_PROFILE_DEV_DEBUG": "0"}
        subprocess.run([*install, "gungraun-runner", "--version", f"={version}"], check=True, env=environment)
    return program


def baseline() -> tuple[str, dict[str, int]]:
    """The revision that last changed the file, and its counts by the toolchain here."""
    if wheels.git("rev-parse", "--is-shallow-repository") == "true":
        raise SystemExit(f"a shallow clone does not know which revision changed {FILE.name}: git fetch --unshallow")
    revision = wheels.git("log", "-1", "--format=%h", "--", str(FILE))
    if not revision:
        raise SystemExit(f"no commit has {FILE.name}: record it with --record, and commit it")
    source = ROOT / "target" / "counts" / revision
    if not source.exists():
        wheels.extract(revision, source)
    return revision, count(source)


def main(arguments: list[str]) -> int:
    """Counts and compares, or records; returns the exit status."""
    options = _options(arguments)
    if shutil.which("valgrind") is None:
        print("make counts: SKIPPED: valgrind is not installed (Debian: apt-get install valgrind)", file=sys.stderr)
        return int(options.require)
    calls = rule_calls()
    print(rules_table(calls), flush=True)
    slow = int(any(count > limit(name) for name, count in calls.items()))
    now = Counts(toolchain(), count())
    if options.record:
        now.write(FILE)
        return slow
    before = Counts.read(FILE)
    if now.toolchain == before.toolchain and is_within(now.instructions, before.instructions):
        print(table(now.instructions, before.instructions))
        return slow
    print(f"{_why(now, before)}: counting the revision that last changed {FILE.name} ...", flush=True)
    revision, instructions = baseline()
    print(f"baseline: {revision}, counted here\n{table(now.instructions, instructions)}")
    return slow or int(not is_within(now.instructions, instructions))


def _why(now: Counts, before: Counts) -> str:
    """The reason why the recorded counts do not apply."""
    if now.toolchain == before.toolchain:
        return "a count is above that of the file"
    pairs = ((before.toolchain.get(name, "nothing"), value) for name, value in now.toolchain.items())
    return "the file is of " + ", ".join(f"{old}, not {new}" for old, new in pairs if old != new)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the counts of the checkout to the file")
    parser.add_argument("--require", action="store_true", help="fail without valgrind")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
