"""Memory of training on a CPU: the peak of steps in the backward beside what must be there, and slots in a file that memory cannot hold.

Each measurement is a process of its own. The file's runs under a limit of memory, the page cache included, in a control group below that
of this process, where the system lets one be made.
"""

import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import sizes
from measure import Outcome, Settings, Verdict
from oxigrad.step.state.write_back import memory_group

# Layers of WIDTH x WIDTH numbers in float32, whose gradients the allocator maps and unmaps by themselves.
# In small layers the memory exceeds what the system may take back of mapped files meanwhile.
LAYERS, WIDTH, SMALL = 8, 4096, 1536
# The peak while training, beyond that of a process which has taken a step of a small model.
TRAINING = """
import sys, torch
from oxigrad.torch import AdamW
torch.set_num_threads(1)
layers, width, in_backward = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True"
def train(layers, width, steps):
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width, bias=False) for _ in range(layers)])
    opt = AdamW(model.parameters(), lr=1e-4, in_backward=in_backward)
    for _ in range(steps):
        model(torch.ones(1, width)).square().mean().backward()
        opt.step()
        opt.zero_grad()
def peak():  # not that of getrusage, which includes the parent's
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
train(2, 16, 2)
before = peak()
train(layers, width, 3)
print(peak() - before)
"""
# Steps over slots in a file, and as many reads and writes of a file of that size: seconds of each. The limit is what the process has
# before there are slots, and a third of these, or the 64 MB without which no step of a small one ends.
FILE = """
import os, sys, time, torch
from oxigrad.torch import AdamW
torch.set_num_threads(1)
folder, count, used, limit = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]
in_backward = sys.argv[5] == "True"
params = [torch.nn.Parameter(torch.ones(count // 32, dtype=torch.bfloat16)) for _ in range(32)]
gradient = torch.ones_like(params[0])
for p in () if in_backward else params:
    p.grad = gradient.clone()
class Layer(torch.autograd.Function):
    @staticmethod
    def forward(context, x, p):
        return x + 1
    @staticmethod
    def backward(context, g):
        return g, gradient.clone()
def step():
    x = torch.zeros(1)
    for p in params if in_backward else ():
        x = Layer.apply(x, p)
    if in_backward:
        x.sum().backward()
    opt.step()
file = os.path.join(folder, "state.safetensors")
opt = AdamW(params, lr=1e-3, state_dtype="float32", state_device=file, in_backward=in_backward)
with open(used) as file:
    taken = int(file.read())
with open(limit, "w") as file:
    file.write(str(taken + max(8 * count // 3, 1 << 26)))
step()
begin = time.perf_counter()
for _ in range(2):
    step()
ours = time.perf_counter() - begin
assert opt.state[params[0]]["step"] == 3
del opt
piece, file = bytearray(1 << 22), os.open(os.path.join(folder, "plain"), os.O_RDWR | os.O_CREAT)
pieces = 8 * count // len(piece)
def write():
    for at in range(pieces):
        os.pwrite(file, piece, at * len(piece))
write()
begin = time.perf_counter()
for _ in range(2):
    for at in range(pieces):
        os.preadv(file, [piece], at * len(piece))
        os.pwrite(file, piece, at * len(piece))
print(ours, time.perf_counter() - begin)
"""


def measured(text: str, *arguments: object, group: Path | None = None) -> list[float]:
    """The numbers that a process prints, which is moved into a control group first."""
    command = [sys.executable, "-c", text, *map(str, arguments)]
    if group is not None:
        command = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2] or f"the process ended with {done.returncode}")
    return [float(word) for word in done.stdout.split()]


@dataclasses.dataclass(frozen=True)
class Peak:
    """A row that measures the peak memory of training a deep model on a CPU."""

    name: str

    def run(self, settings: Settings) -> Outcome:
        """Trains with steps in the backward and after it."""
        width = SMALL if sizes.is_small() else WIDTH
        goal = "within 2 % of parameters, slots and a gradient"
        try:
            inside, after = (measured(TRAINING, LAYERS, width, flag)[0] for flag in (True, False))
        except RuntimeError as error:
            return _nothing(self.name, goal, str(error))
        layer = 4 * width * width
        must = (3 * LAYERS + 1) * layer
        lines = [
            self.name,
            f"  ours      in_backward {inside / 1e6:,.0f} MB, {inside / must:.3f} of parameters, slots and a gradient ({must / 1e6:,.0f} MB)",
            f"  peer      after the backward {after / 1e6:,.0f} MB, {after / (4 * LAYERS * layer):.3f} of parameters, slots and gradients",
        ]
        is_wrong = min(inside, after) < must / 2  # Parameters and slots alone are more.
        word = "WRONG" if is_wrong else "reached" if inside <= 1.02 * must else "MISSED"
        data = {"row": self.name, "bytes": inside, "after": after, "least": must}
        return Outcome(lines, [Verdict(self.name, goal, f"{inside / must:.3f}", word)], data, wrong=is_wrong)


@dataclasses.dataclass(frozen=True)
class SlotsInFile:
    """A row that takes steps whose slots, in a file, are three times the memory that a control group has for them."""

    name: str
    parameters: int
    in_backward: bool = False

    def run(self, settings: Settings) -> Outcome:
        """Takes the steps, and reads and writes a file of that size."""
        count = sizes.numbers(self.parameters)
        goal = "finishes, within 1.3x of reading and writing the file"
        try:
            with control_group() as (group, used, limit), tempfile.TemporaryDirectory(dir=".") as folder:
                ours, plain = measured(FILE, folder, count, group / used, group / limit, self.in_backward, group=group)
        except (OSError, RuntimeError) as error:
            return _nothing(self.name, goal, str(error))
        lines = [
            self.name,
            f"  ours      two steps over {8 * count / 1e6:,.0f} MB of slots in {ours:.2f} s",
            f"  peer      two times read and written by the system {plain:.2f} s, {ours / plain:.2f}x",
        ]
        word = "reached" if ours <= 1.3 * plain else "MISSED"
        data = {"row": self.name, "seconds": ours, "plain": plain}
        return Outcome(lines, [Verdict(self.name, goal, f"{ours / plain:.2f}x", word)], data)


def _nothing(name: str, goal: str, why: str) -> Outcome:
    return Outcome([name, f"  not measured: {why}"], [Verdict(name, goal, "nothing", "not measured")], {"row": name})


@contextlib.contextmanager
def control_group() -> Iterator[tuple[Path, str, str]]:
    """A control group below the one of this process, and its files of used memory and of the limit. Raises `OSError` where there is none."""
    _, above, is_first = memory_group()
    group = above / f"oxigrad-{os.getpid()}"
    group.mkdir()
    try:
        yield (
            group,
            *(("memory.usage_in_bytes", "memory.limit_in_bytes") if is_first else ("memory.current", "memory.max")),
        )
    finally:
        group.rmdir()


ROWS = [
    Peak("peak memory of training in the backward, 8 x 4096 x 4096"),
    SlotsInFile("slots in a file, three times the memory, 128M parameters", 1 << 27),
    SlotsInFile("slots in a file, three times the memory, 128M parameters, in the backward", 1 << 27, in_backward=True),
]
