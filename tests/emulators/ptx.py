"""An interpreter of PTX, the assembly language that NVRTC compiles CUDA C++ to.

It executes what the compiler emitted, for all threads of all blocks of a launch at once: a register is an array with an element for each
thread, its *lane*. Where lanes part at a branch, the group that is furthest behind goes on, so that groups meet again after loops and
branches. A barrier waits for all threads of its block that have not returned, and it is an error if one of them waits elsewhere.

>>> module = Module(compile_text(text, "compute_90").code.decode())
>>> memory = Memory()
>>> x = memory.put(np.ones(64, np.float32))
>>> module.launch("scale", grid=1, block=64, params=struct.pack("<Qf", x.address, 2.0), memory=memory)

Opcodes and modifiers that are not known are errors (`PtxError`), and so is what hardware leaves undefined: see `ptx_memory`.
"""

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ptx_memory import Accesses, Image, Memory, Scratch
from ptx_values import TYPES, PtxError, operation

# Sections of a program (from a label or a branch to the next) that a launch may execute.
_MOST_SECTIONS = 200_000
# Registers are filled with this byte before they are written.
_POISON = 0xA5


class Instruction:
    """A statement: its guard such as ``!%p1``, its opcode, and its operands as they are written."""

    def __init__(self, text: str, guard: str, opcode: str, operands: tuple[str, ...]) -> None:
        self.text, self.guard, self.opcode, self.operands = text, guard, opcode, operands
        #: "branch", "return" or "barrier"; nothing for an instruction that computes or accesses memory.
        self.control = _CONTROL.get(opcode, "")
        self._executor: Execute | None = None

    def execute(self, launch: "_Launch", mask: "Mask") -> None:
        """Executes the instruction for some lanes."""
        if self._executor is None:
            self._executor = _executor(self)
        self._executor(launch, mask)


_CONTROL: dict[str, str] = {
    **dict.fromkeys(("bra", "bra.uni"), "branch"),
    **dict.fromkeys(("ret", "ret.uni", "exit"), "return"),
    **dict.fromkeys(("bar.sync", "barrier.sync", "barrier.sync.aligned"), "barrier"),
}


@dataclass
class Variable:
    """Memory that is declared by name: its offset in its space."""

    space: str
    offset: int
    size: int
    content: bytes = b""


@dataclass
class Kernel:
    """An entry: the instructions, the places of labels, and the declared registers and memory."""

    name: str
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)  # the type by the name, or by the part before the number
    variables: dict[str, Variable] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    limits: dict[str, tuple[int, ...]] = field(default_factory=dict)


# --- parsing -----------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)\s*\(([^)]*)\)([^{]*)\{")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr[^,\n]*?)?([\w$]+)(?:\[(\d+)\])?\s*$")
_VARIABLE = re.compile(
    r"(?:\.visible\s+|\.weak\s+)?\.(shared|local|global|const)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?(?:\s*=\s*(.*))?$",
    re.DOTALL,
)
_REGISTER = re.compile(r"\.reg\s+\.(\w+)\s+([^;]*)$")
_LABEL = re.compile(r"([\w$]+):")
_INSTRUCTION = re.compile(r"(?:@(!?%\w+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.DOTALL)
_IGNORED = re.compile(r"\.(?:version|target|address_size|pragma|loc|file|section)\b")


def _bytes(kind: str) -> int:
    return TYPES[kind].itemsize if kind in TYPES else {"b128": 16}[kind]


def split(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


class Module:
    """The kernels of a text in PTX, by name."""

    def __init__(self, text: str) -> None:
        found, outside = _entries(text)
        if function := re.search(r"\.func\b[^{;]*", outside):
            raise PtxError(f"functions that are called: {function[0].strip()}")
        shared: dict[str, Variable] = {}
        sizes: dict[str, int] = {}
        for statement in re.sub(r"\.(version|target|address_size)[^\n]*", "", outside).split(";"):
            if statement.strip():
                _declare(statement.strip(), shared, sizes)
        self._globals = {
            name: Memory().put(np.frombuffer(each.content, np.uint8), name, writable=each.space == "global")
            for name, each in shared.items()
            if each.space in {"global", "const"}
        }
        self.kernels: dict[str, Kernel] = {}
        for entry, body in found:
            kernel = Kernel(entry[1], variables=dict(shared), sizes=dict(sizes))
            _parse_parameters(entry[2], kernel)
            kernel.limits = {
                name: tuple(int(number) for number in numbers.split(","))
                for name, numbers in re.findall(r"\.(maxntid|reqntid|minnctapersm)\s+([\d, ]+)", entry[3])
            }
            _parse_body(body, kernel)
            self.kernels[kernel.name] = kernel

    def opcodes(self, name: str) -> set[str]:
        """The opcodes that a kernel has."""
        return {instruction.opcode for instruction in self.kernels[name].code}

    def launch(self, name: str, *, grid: int, block: int, params: bytes, memory: Memory) -> None:
        """Runs a kernel with ``grid`` blocks of ``block`` threads to its end. ``params`` are its parameters as they lie in memory."""
        addresses = {name: buffer.address for name, buffer in self._globals.items()}
        with memory.launched(self._globals.values()) as image, np.errstate(all="ignore"):
            _Launch(self.kernels[name], grid, block, params, image, addresses).run()


def kernels(text: str) -> dict[str, str]:
    """The bodies of the kernels of a text in PTX, by name."""
    return {entry[1]: body for entry, body in _entries(text)[0]}


def _entries(text: str) -> tuple[list[tuple[re.Match[str], str]], str]:
    """The heads and bodies of kernels, and what stands outside of them."""
    text = _COMMENT.sub(" ", text.rstrip("\0"))
    entries, at, outside = [], 0, ""
    while found := _ENTRY.search(text, at):
        outside += text[at : found.start()]
        end = _matching_brace(text, found.end())
        entries.append((found, text[found.end() : end - 1]))
        at = end
    return entries, outside + text[at:]


_BRACE = re.compile(r"[{}]")


def _matching_brace(text: str, at: int) -> int:
    """The place behind the brace that closes one which stands before ``at``."""
    depth = 1
    for found in _BRACE.finditer(text, at):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.end()
    raise PtxError("a brace that is not closed")


def _parse_parameters(text: str, kernel: Kernel) -> None:
    size = 0
    for parameter in split(text):
        found = _PARAMETER.match(parameter)
        if found is None:
            raise PtxError(f"unknown parameter {parameter}")
        each = _bytes(found[2])
        align = int(found[1] or each)
        size = (size + align - 1) // align * align
        bytes_ = each * int(found[4] or 1)
        kernel.variables[found[3]] = Variable("param", size, bytes_)
        size += bytes_
    kernel.sizes["param"] = size


def _declare(statement: str, variables: dict[str, Variable], sizes: dict[str, int]) -> None:
    """A variable in a memory space. Those in shared and local memory are placed one after another."""
    found = _VARIABLE.match(statement)
    if found is None:
        raise PtxError(f"unknown statement {statement}")
    space, align, kind, name, count, content = found.groups()
    size = _bytes(kind) * int(count or 1)
    start = (sizes.get(space, 0) + int(align or _bytes(kind)) - 1) // int(align or _bytes(kind))
    start *= int(align or _bytes(kind))
    numbers = [int(number, 0) for number in re.findall(r"-?\w+", content or "")]
    stored = np.array(numbers, np.int64).astype(TYPES[kind]).tobytes().ljust(size, b"\0")
    variables[name] = Variable(space, start, size, stored)
    sizes[space] = start + size


def _parse_body(text: str, kernel: Kernel) -> None:
    for statement in _statements(text):
        if found := _REGISTER.match(statement):
            for name in split(found[2]):
                kernel.registers[re.sub(r"<\d+>", "", name)] = found[1]
        elif statement.startswith("."):
            if not _IGNORED.match(statement):
                _declare(statement, kernel.variables, kernel.sizes)
        elif found := _LABEL.fullmatch(statement):
            kernel.labels[found[1]] = len(kernel.code)
        else:
            kernel.code.append(_instruction(statement))


@functools.lru_cache(maxsize=100_000)
def _instruction(statement: str) -> Instruction:
    """The instruction of a statement; kernels have most of theirs in common."""
    found = _INSTRUCTION.match(statement)
    if found is None:
        raise PtxError(f"unknown statement {statement}")
    return Instruction(statement, found[1] or "", found[2], tuple(split(found[3])))


def _statements(text: str) -> Iterator[str]:
    """Statements and labels, without the braces of scopes."""
    for part in text.split(";"):
        statement = " ".join(part.split())
        while statement:
            if statement[0] in "{}":
                statement = statement[1:].strip()
            elif (found := _LABEL.match(statement)) and not statement.startswith("::", found.end() - 1):
                yield found[0]
                statement = statement[found.end() :].strip()
            else:
                yield statement
                break


# --- execution ---------------------------------------------------------------------------------------------------------

_ACCESS = re.compile(
    r"(ld|st)(?P<volatile>\.volatile)?(?:\.(?P<space>param|global|shared|local|const))?(?:\.(?:ca|cg|cs|cv|lu|wb|wt))?"
    r"(?P<nc>\.nc)?(?:\.L[12]::[\w:]+)*(?:\.v(?P<count>[248]))?\.(?P<kind>[busf](?:8|16|32|64))"
)
_PACK = re.compile(r"mov\.b(32|64)")
_SPECIAL = re.compile(r"%(tid|ntid|ctaid|nctaid)\.([xyz])")
_FLOAT = re.compile(r"0([fF](?=.{8}$)|[dD](?=.{16}$))([0-9a-fA-F]+)")
Mask = Any


class _Launch:
    """The state of a launch: the registers of all lanes, and where each group of lanes stands."""

    def __init__(
        self, kernel: Kernel, grid: int, block: int, params: bytes, memory: Image, globals_: dict[str, int]
    ) -> None:
        if len(params) != kernel.sizes["param"]:
            raise PtxError(f"{kernel.name} has {kernel.sizes['param']} bytes of parameters: {len(params)} were given")
        for limit in ("maxntid", "reqntid"):
            allowed = int(np.prod(kernel.limits.get(limit, (block,))))
            if block > allowed or (limit == "reqntid" and block != allowed):
                raise PtxError(f"{kernel.name} has .{limit} {allowed}: it is launched with blocks of {block}")
        self.kernel, self.grid, self.block = kernel, grid, block
        self.memory, self.globals = memory, globals_
        self.params = np.frombuffer(params.ljust((len(params) + 31) // 16 * 16, b"\0"), np.uint8)
        self.lanes = np.arange(grid * block)
        self.blocks, self.threads = self.lanes // block, self.lanes % block
        self.epochs = np.zeros(grid, np.int64)
        self.codes = self._codes()
        self.shared = Scratch("shared", kernel.sizes.get("shared", 0), grid)
        self.local = Scratch("local", kernel.sizes.get("local", 0), grid * block)
        self.registers: dict[str, Any] = {}
        self.views: dict[tuple[str, Any], Any] = {}  # registers and constants by name and type
        self.returned = np.zeros(self.lanes.size, bool)
        self.every = np.ones(self.lanes.size, bool)  # the mask of all lanes, which is told by identity
        self.ready: dict[int, Mask] = {0: self.every}
        self.waiting: dict[int, Mask] = {}
        self.starts = set(kernel.labels.values())

    def _codes(self) -> Any:
        return Accesses.codes(self.blocks, self.epochs[self.blocks], self.threads)

    # control flow

    def run(self) -> None:
        for _ in range(_MOST_SECTIONS):
            if self.ready:
                at = min(self.ready)
                self._section(at, self.ready.pop(at))
            elif self.waiting:
                self._release()
            else:
                return
        raise PtxError(f"{self.kernel.name} does not end")

    def _section(self, at: int, mask: Mask) -> None:
        """Executes instructions for a group of lanes up to a branch, a barrier, a return, or a label where others may join."""
        code = self.kernel.code
        if mask.all():
            mask = self.every
        while at < len(code):
            instruction = code[at]
            try:
                following = self._instruction(instruction, at, mask)
            except PtxError as error:
                raise PtxError(f"{self.kernel.name}: {instruction.text}: {error}") from error
            at += 1
            if following is not mask:
                if not following.any():
                    return
                if self.ready:
                    self._join(self.ready, at, following)
                    return
                mask = following
            if at in self.starts:
                self._join(self.ready, at, mask)
                return
        self.returned |= mask

    def _instruction(self, instruction: Instruction, at: int, mask: Mask) -> Mask:
        """Executes an instruction, and gives the lanes that go on behind it: ``mask`` itself where all do."""
        active = mask
        if instruction.guard:
            value = self.registers[instruction.guard.lstrip("!")]
            active = mask & (~value if instruction.guard[0] == "!" else value)
        if not instruction.control:
            if active is mask or active.any():
                instruction.execute(self, active)
            return mask
        if not active.any():
            return mask
        if instruction.control == "branch":
            self._join(self.ready, self.kernel.labels[instruction.operands[0]], active)
        elif instruction.control == "return":
            self.returned |= active
        else:
            if instruction.guard or instruction.operands != ("0",):
                raise PtxError("a barrier with a guard, a number or a count of threads")
            self._join(self.waiting, at, mask)
        return mask & ~active

    @staticmethod
    def _join(groups: dict[int, Mask], at: int, mask: Mask) -> None:
        if mask.any():
            groups[at] = groups[at] | mask if at in groups else mask

    def _release(self) -> None:
        """Lets all blocks pass the barriers where all of their threads wait."""
        for at, mask in self.waiting.items():
            there, of_block = mask.reshape(self.grid, -1), (~self.returned).reshape(self.grid, -1)
            split_blocks = np.flatnonzero(there.any(axis=1) & (there != of_block).any(axis=1))
            if split_blocks.size:
                raise PtxError(
                    f"{self.kernel.name}: {self.kernel.code[at].text}: {there[split_blocks[0]].sum()} of "
                    f"{of_block[split_blocks[0]].sum()} threads of block {split_blocks[0]} wait at this barrier"
                )
            self.epochs += there.any(axis=1)
            self._join(self.ready, at + 1, mask)
        self.waiting = {}
        self.codes = self._codes()

    # operands

    def get(self, operand: str, kind: str) -> Any:
        """The value of an operand as a type: of all lanes, or one for all."""
        value = self.views.get((operand, kind))
        return self._get(operand, kind) if value is None else value

    def _get(self, operand: str, kind: str) -> Any:
        dtype = TYPES[kind]
        if operand[0] == "!":
            return ~self.get(operand[1:], kind)
        if operand in self.registers:
            value = self.registers[operand]
            if value.dtype.itemsize < dtype.itemsize or (kind == "pred") != (value.dtype == bool):
                raise PtxError(f"{operand} is not of type {kind}")
            if value.dtype.itemsize > dtype.itemsize:
                return value.astype(f"u{dtype.itemsize}").view(dtype)
            found = value.view(dtype)
        elif operand[0] == "%":
            found = self._special(operand).astype(np.uint32).view(dtype)
        else:
            found = np.asarray(self._constant(operand, dtype))
        self.views[operand, kind] = found  # a register is written in place
        return found

    def _special(self, operand: str) -> Any:
        found = _SPECIAL.fullmatch(operand)
        if found is None:
            raise PtxError(f"{operand} is read before it is written")
        if found[2] != "x":
            return np.full(self.lanes.size, found[1] in {"ntid", "nctaid"})
        numbers = {"tid": self.threads, "ntid": self.block, "ctaid": self.blocks, "nctaid": self.grid}
        return np.broadcast_to(numbers[found[1]], self.lanes.shape)

    def _constant(self, operand: str, dtype: np.dtype) -> Any:
        if operand in self.globals:
            return dtype.type(self.globals[operand])
        if operand in self.kernel.variables:
            return dtype.type(self.kernel.variables[operand].offset)
        if found := _FLOAT.fullmatch(operand):
            bits = np.uint32(int(found[2], 16)) if len(found[2]) == 8 else np.uint64(int(found[2], 16))
            if bits.itemsize != dtype.itemsize:
                raise PtxError(f"{operand} is not of {8 * dtype.itemsize} bits")
            return bits.view(dtype)
        try:
            number = int(operand.removesuffix("U"), 0)
        except ValueError:
            raise PtxError(f"unknown operand {operand}") from None
        if dtype.kind == "f":
            raise PtxError(f"{operand} is not a floating-point number")
        return np.array(number & (1 << 8 * dtype.itemsize) - 1, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)[()]

    def set(self, operand: str, value: Any, mask: Mask) -> None:
        """Writes a register of the lanes in ``mask``. A register that is wider than a value extends it."""
        if operand == "_":
            return
        value = np.asarray(value)
        view = self.views.get((operand, value.dtype))
        if view is None:
            self._extend(operand, value, mask)
        elif mask is self.every:
            view[...] = value
        else:
            np.copyto(view, value, where=mask)

    def _extend(self, operand: str, value: Any, mask: Mask) -> None:
        """Writes a register that is new, or wider than the value."""
        register = self.registers.get(operand)
        if register is None:
            register = self.registers[operand] = self._new_register(operand)
        if value.dtype.itemsize == register.dtype.itemsize and (value.dtype == bool) == (register.dtype == bool):
            self.views[operand, value.dtype] = register.view(value.dtype)
        if value.dtype.kind == "f":
            value = value.view(f"u{value.dtype.itemsize}")
        if value.dtype.itemsize > register.dtype.itemsize or (value.dtype == bool) != (register.dtype == bool):
            raise PtxError(f"{operand} cannot hold {value.dtype}")
        np.copyto(register, value, where=mask, casting="unsafe")

    def _new_register(self, name: str) -> Any:
        registers = self.kernel.registers
        kind = registers.get(name) or registers.get(name.rstrip("0123456789"))
        if kind is None:
            raise PtxError(f"{name} is not declared")
        dtype = np.dtype(bool) if kind == "pred" else np.dtype(f"u{_bytes(kind)}")
        return np.full(self.lanes.size * dtype.itemsize, _POISON & (1 if kind == "pred" else 255), np.uint8).view(dtype)

    # memory

    def address(self, operand: str) -> Any:
        """The addresses of an operand such as ``[%rd1+16]``."""
        name, _, offset = operand[1:-1].replace(" ", "").partition("+")
        if name in self.registers:
            wide = self.registers[name].dtype.itemsize == 8
            base = self.get(name, "u64") if wide else self.get(name, "u32").astype(np.uint64)
        else:
            base = self.get(name, "u64")
        added = np.uint64(int(offset or "0", 0) & (1 << 64) - 1)
        return base + added

    def parameter(self, at: int, size: int) -> Any:
        """Bytes of the parameters."""
        if at + size > self.kernel.sizes["param"] or at % size:
            raise PtxError("a parameter is read out of bounds, or not aligned")
        return self.params[at : at + size]

    def load(self, space: str, addresses: Any, size: int, mask: Mask, *, is_constant: bool) -> Any:
        """Rows of bytes of the lanes in ``mask``."""
        lanes = np.flatnonzero(mask)
        addresses, codes = np.broadcast_to(addresses, self.lanes.shape)[lanes], self.codes[lanes]
        if space == "param":
            at = addresses.view(np.int64)
            if at.size and (at.min() < 0 or at.max() + size > self.kernel.sizes["param"] or (at % size).any()):
                raise PtxError("a parameter is read out of bounds, or not aligned")
            return self.params[: self.params.size // size * size].reshape(-1, size)[at // size]
        if space == "shared":
            return self.shared.read(lanes, addresses, size, codes, self.blocks[lanes])
        if space == "local":
            return self.local.read(lanes, addresses, size, codes, lanes)
        return self.memory.read(lanes, addresses, size, codes, is_constant=is_constant)

    def store(self, space: str, addresses: Any, rows: Any, mask: Mask) -> None:
        lanes = np.flatnonzero(mask)
        addresses = np.broadcast_to(addresses, self.lanes.shape)[lanes]
        rows, codes = rows[lanes], self.codes[lanes]
        if space == "shared":
            self.shared.write(lanes, addresses, rows, codes, self.blocks[lanes])
        elif space == "local":
            self.local.write(lanes, addresses, rows, codes, lanes)
        elif space == "global":
            self.memory.write(lanes, addresses, rows, codes)
        else:
            raise PtxError(f"a write to {space} memory")


Execute = Callable[[_Launch, Mask], None]


def _executor(instruction: Instruction) -> Execute:
    if instruction.opcode.startswith(("ld.", "st.")):
        return _access(instruction)
    if _PACK.fullmatch(instruction.opcode) and "{" in "".join(instruction.operands):
        return _pack(instruction)
    return _compute(instruction)


def _compute(instruction: Instruction) -> Execute:
    meaning = operation(instruction.opcode)
    to, *operands = instruction.operands
    if len(operands) != len(meaning.operands):
        raise PtxError(f"{len(meaning.operands)} operands are expected")
    to, _, inverse = to.partition("|")
    typed = list(zip(operands, meaning.operands, strict=True))
    function, dtype = meaning.function, TYPES[meaning.result]

    def execute(launch: _Launch, mask: Mask) -> None:
        values = [launch.get(operand, kind) for operand, kind in typed]
        if mask is launch.every:
            value = np.asarray(function(*values)).view(dtype)
        elif 2 * np.count_nonzero(mask) < mask.size:  # most lanes are elsewhere
            values = [value[mask] if value.ndim else value for value in values]
            value = np.zeros(mask.size, dtype)
            value[mask] = np.asarray(function(*values)).view(dtype)
        else:
            value = np.asarray(function(*values)).view(dtype)
        launch.set(to, value, mask)
        if inverse:
            launch.set(inverse, ~value, mask)

    return execute


def _pack(instruction: Instruction) -> Execute:
    """Moves between a register and the parts of it."""
    to, value = instruction.operands
    bits = int(instruction.opcode[5:])
    parts = split((to if to[0] == "{" else value)[1:-1])
    whole_type, each = TYPES[f"b{bits}"], bits // len(parts)

    def unpack(launch: _Launch, mask: Mask) -> None:
        whole = launch.get(value, f"b{bits}")
        for number, part in enumerate(parts):
            launch.set(part, (whole >> whole_type.type(number * each)).astype(TYPES[f"b{each}"]), mask)

    def pack(launch: _Launch, mask: Mask) -> None:
        columns = [np.broadcast_to(launch.get(part, f"b{each}"), launch.lanes.shape) for part in parts]
        launch.set(to, np.stack(columns, axis=1).view(whole_type)[:, 0], mask)

    return unpack if to[0] == "{" else pack


def _access(instruction: Instruction) -> Execute:
    """Loads and stores of one to eight values in a row."""
    found = _ACCESS.fullmatch(instruction.opcode)
    if found is None:
        raise PtxError(f"unknown opcode {instruction.opcode}")
    is_load, count, kind = found[1] == "ld", int(found["count"] or 1), found["kind"]
    value, place = instruction.operands if is_load else instruction.operands[::-1]
    names = split(value[1:-1]) if value[0] == "{" else [value]
    if len(names) != count or place[0] != "[":
        raise PtxError("an access of another number of values")
    space, dtype, size = found["space"] or "global", TYPES[kind], count * TYPES[kind].itemsize
    is_constant = bool(found["nc"] or space == "const")

    def load(launch: _Launch, mask: Mask) -> None:
        addresses = launch.address(place)
        if space == "param" and addresses.ndim == 0:
            for name, each in zip(names, launch.parameter(int(addresses), size).view(dtype), strict=True):
                launch.set(name, each, mask)
            return
        rows = launch.load(space, addresses, size, mask, is_constant=is_constant)
        values = np.zeros((count, launch.lanes.size), dtype)
        values[:, mask] = rows.view(dtype).T
        for name, each in zip(names, values, strict=True):
            launch.set(name, each, mask)

    def store(launch: _Launch, mask: Mask) -> None:
        columns = [np.broadcast_to(launch.get(name, kind), launch.lanes.shape) for name in names]
        rows = np.stack(columns, axis=1).view(np.uint8).reshape(-1, size)
        launch.store(space, launch.address(place), rows, mask)

    return load if is_load else store
