"""Slots in a file, ``state_device``: the bits of slots in memory, a file that a crash leaves whole, and what is refused by name."""

from __future__ import annotations

import copy
import errno
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from oxigrad import StateError  # noqa: E402
from oxigrad.step.state import safetensors_io  # noqa: E402
from oxigrad.torch.state import file as state_file  # noqa: E402
from torch_offload import check_same  # noqa: E402
from torch_problems import OURS, copies, equal, parameters, shapes_for, states, train, values  # noqa: E402
from torch_requirements import device_mesh  # noqa: E402

# Their steps read the loss, or are other ones.
OTHERS = {"MoMo", "MoMoAdam", "PolyakSGD", "LBFGS", "SparseAdam"}
NAMES = sorted({*OURS.names} - OTHERS)
LARGE = ((64, 65), (3,))  # the first has as many numbers as a state of 8 bits asks for
HALF, FULL = torch.bfloat16, torch.float32
OPTIONS: list[tuple[dict[str, Any], Any]] = [
    ({"state_dtype": "8bit"}, FULL),
    ({"state_dtype": "4bit"}, FULL),
    ({"master": True}, HALF),
    ({"rounding": "kahan"}, HALF),
    ({"rounding": "stochastic", "state_dtype": "8bit"}, HALF),
    ({"max_norm": 0.5}, FULL),
    ({"in_backward": True}, FULL),
    ({"amsgrad": True}, torch.complex64),
]


def mapped() -> int:
    """The bytes of nameless files that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = [line.split()[0].split("-") for line in lines if line.endswith("(deleted)") and "/tmp" in line]  # noqa: S108
    return sum(int(end, 16) - int(start, 16) for start, end in found)


def flushed(opt: Any) -> Any:
    """The state of an optimizer in its file."""
    opt.flush()
    return ours.read_state(opt.state_file.path)


@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_bits_of_slots_in_memory(name: str, tmp_path: Path) -> None:
    check_same(name, {}, shapes_for(name), FULL, tmp_path / "state.safetensors", saved=flushed)


@pytest.mark.parametrize(("options", "dtype"), OPTIONS)
def test_every_option_has_the_same_bits(options: dict[str, Any], dtype: Any, tmp_path: Path) -> None:
    check_same("AdamW", options, LARGE, dtype, tmp_path / "state.safetensors", saved=flushed)


def test_channels_last_and_groups(tmp_path: Path) -> None:
    found = []
    for further in ({}, {"state_device": tmp_path / "state.safetensors"}):
        torch.manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)) for _ in range(2)]
        groups = [{"params": params[:1]}, {"params": params[1:], "lr": torch.tensor(0.5), "betas": (0.5, 0.9)}]
        opt = ours.AdamW(groups, lr=0.1, foreach=False, **further)
        train(opt, params)
        found.append((values(params), states(opt), [t.stride() for t in states(opt)]))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])
    assert found[0][2] == found[1][2]
    opt.flush()
    saved = ours.read_state(tmp_path / "state.safetensors")["param_groups"]
    assert saved == opt.state_dict()["param_groups"]
    assert type(saved[1]["betas"]) is tuple


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_slots_are_in_the_file_and_its_places_are_used_again(tmp_path: Path) -> None:
    params = parameters(((300, 100), (1000,)))
    gc.collect()
    before = mapped() if str(tmp_path).startswith("/tmp") else None  # noqa: S108
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params)
    size = opt.state_file._end
    assert 2 * 31000 * 4 <= size < 2 * 31000 * 4 + 4 * 64
    if before is not None:
        assert mapped() - before >= size
    for _ in range(3):
        opt.load_state_dict(copy.deepcopy(opt.state_dict()))
        train(opt, params)
        gc.collect()
    assert opt.state_file._end <= 2 * size


def test_memory_has_the_new_slots_of_one_parameter_at_a_time(tmp_path: Path) -> None:
    """They are in the file before those of the next parameter are made: a state is larger than memory from the first step on."""
    shapes = [(64, 65)] * 4
    opt = ours.AdamW(parameters(shapes), state_device=tmp_path / "state.safetensors")
    most, place = [], opt.state_file.place

    def watched(path: str, p: Any, own: dict[str, Any]) -> None:
        made = [t for each in opt.state.values() for key, t in each.items() if key != "step"]
        most.append(sum(t.nbytes for t in made) - opt.state_file._end)
        place(path, p, own)

    opt.state_file.place = watched
    train(opt, opt.param_groups[0]["params"], [0])
    assert len(most) >= len(shapes)
    assert max(most) == 2 * 4 * 64 * 65


def test_loading_leaves_tensors_of_an_earlier_state_as_they_are(tmp_path: Path) -> None:
    params = parameters()
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params)
    kept = opt.state[params[0]]["exp_avg"]
    before, state = kept.clone(), copy.deepcopy(opt.state_dict())
    state["state"][0]["exp_avg"].fill_(7.0)
    opt.load_state_dict(state)
    train(opt, params)
    assert torch.equal(kept, before)


def test_copies_keep_their_slots_in_memory(tmp_path: Path) -> None:
    params = parameters()
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params)
    others, other = copy.deepcopy((params, opt))
    train(opt, params, range(3, 5))
    train(other, others, range(3, 5))
    assert equal(others, params)
    with pytest.raises(ValueError, match="state_device, which is None"):
        other.flush()


# --- crashes and full disks ------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
import torch, oxigrad.torch as ours
from torch_problems import parameters, train
params = parameters(((64, 65), (3,)))
opt = ours.AdamW(params, state_device={file!r})
train(opt, params, range(2))
opt.flush()
train(opt, params, range(2, 5))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
def test_a_killed_process_leaves_the_last_flush(tmp_path: Path) -> None:
    file = tmp_path / "state.safetensors"
    text = KILLED.format(paths=[p for p in sys.path if p], file=str(file))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    params = parameters(LARGE)
    opt = ours.AdamW(params)
    train(opt, params, range(2))
    resumed = ours.AdamW(again := copies(params))
    resumed.load_state_dict(ours.read_state(file))
    assert equal(states(resumed), states(opt))
    train(opt, params, [2])
    train(resumed, again, [2])
    assert equal(again, params)
    assert [each.name for each in tmp_path.iterdir()] == ["state.safetensors"]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="there is no posix_fallocate")
@pytest.mark.parametrize("others", [{}, {"in_backward": True}], ids=["after", "in the backward"])
def test_a_full_disk_changes_nothing(others: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    model = torch.nn.Linear(3, 2)
    opt = ours.AdamW(model.named_parameters(), state_device=tmp_path / "state.safetensors", **others)
    before = values(model.parameters())
    with monkeypatch.context() as context:
        context.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match=r"(weight|bias): the state 'exp_avg': no room for") as found:
            step(model, opt)
        assert found.value.errno == errno.ENOSPC
    assert equal(model.parameters(), before)
    assert not states(opt)
    opt.zero_grad()
    step(model, opt)
    assert len(opt.state) == 2


def step(model: Any, opt: Any) -> None:
    model(torch.ones(2, 3)).sum().backward()
    opt.step()


def test_a_flush_that_fails_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    params = parameters()
    opt = ours.AdamW(params, state_device=(file := tmp_path / "state.safetensors"))
    train(opt, params)
    opt.flush()
    before = file.read_bytes()
    train(opt, params, [3])
    monkeypatch.setattr(safetensors_io, "save_file", full)
    with pytest.raises(OSError, match="full"):
        opt.flush()
    assert file.read_bytes() == before


def test_a_state_in_the_middle_of_a_step_is_not_written(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    opt = ours.AdamW(model.parameters(), in_backward=True, state_device=tmp_path / "state.safetensors")
    model(torch.ones(2, 3)).sum().backward()
    with pytest.raises(StateError, match="expected step"):
        opt.flush()
    opt.step()
    opt.flush()


# --- what is refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["hosts", "state.pt", 3, "cuda"])
def test_what_is_no_path_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"state_device is .*\.safetensors"):
        ours.AdamW(parameters(), state_device=value)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ours.AdamW(parameters(), state_device=tmp_path / "none" / "state.safetensors")


def test_steps_of_torch_and_rows_are_refused(tmp_path: Path) -> None:
    params = parameters()
    opt = ours.Adam(params, differentiable=True, state_device=tmp_path / "state.safetensors")
    with pytest.raises(RuntimeError, match="state_device is not supported"):
        train(opt, params)
    with pytest.raises(TypeError, match="SparseAdam does not support state_device"):
        ours.SparseAdam(params, state_device=tmp_path / "state.safetensors")


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this build of PyTorch has no torch.distributed")
def test_tensors_elsewhere_are_refused(tmp_path: Path) -> None:
    from torch.distributed.tensor import distribute_tensor

    with device_mesh() as mesh:
        p = torch.nn.Parameter(distribute_tensor(torch.ones(4), mesh))
        p.grad = distribute_tensor(torch.ones(4), mesh)
        with pytest.raises(RuntimeError, match="expected a parameter in host memory"):
            ours.AdamW([p], state_device=tmp_path / "state.safetensors").step()


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.safetensors"
    with pytest.raises(FileNotFoundError):
        ours.read_state(file)
    safetensors_io.write(file, {"a": np.ones(2)}, {})
    with pytest.raises(StateError, match="no state of an optimizer"):
        ours.read_state(file)
    for damaged in ('{"state": 3}', "[", '{"state": {"tensor": "gone"}, "param_groups": 1}'):
        safetensors_io.write(file, {"a": np.ones(2)}, {"format": "oxigrad.torch state 1", "data": damaged})
        with pytest.raises(StateError, match="state"):
            ours.read_state(file)
    file.write_bytes(b"damaged")
    with pytest.raises(StateError):
        ours.read_state(file)


def test_objects_in_a_group_are_refused_by_name(tmp_path: Path) -> None:
    params = parameters()
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    opt.param_groups[0]["mine"] = object()
    with pytest.raises(StateError, match=r"param_groups\.0\.mine is object"):
        opt.flush()


# --- processes, descriptors and damaged files ----------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_forked_process_is_refused_the_slots_that_it_shares(tmp_path: Path) -> None:
    params = parameters(((64, 65), (3,)))
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params)
    before = values(states(opt))
    read, write = os.pipe()
    if not (child := os.fork()):
        told = []
        for use in (opt.step, opt.state_dict, opt.flush):
            try:
                use()
                told.append("nothing")
            except StateError as error:
                told.append("shares with its parent" in str(error))
        os.write(write, repr(told).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "[True, True, True]"
    os.waitpid(child, 0)
    assert equal(states(opt), before)
    train(opt, params, [1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_slots_of_many_parameters_take_few_descriptors(tmp_path: Path) -> None:
    params = parameters([(7,)] * 520)
    others = copies(params)
    before = len(os.listdir("/proc/self/fd"))
    opt, other = ours.AdamW(params, state_device=tmp_path / "state.safetensors"), ours.AdamW(others)
    train(opt, params)
    train(other, others)
    assert len(os.listdir("/proc/self/fd")) - before < 20
    assert equal(params, others)
    assert equal(states(opt), states(other))


@pytest.mark.parametrize(
    "data", ["[" * 100_000 + "]" * 100_000, '{"dict": ' * 100_000 + "1" + "}" * 100_000, "[1]", "1", "{"]
)
def test_data_that_are_no_state_are_an_error_with_the_name_of_the_file(data: str, tmp_path: Path) -> None:
    path = str(tmp_path / "state.safetensors")
    safetensors_io.write(path, {}, {"format": state_file._FORMAT, "data": data})
    with pytest.raises(StateError, match=r"state\.safetensors: the data of the state are damaged"):
        ours.read_state(path)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="there is no posix_fallocate")
def test_a_disk_with_room_for_the_slots_alone_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocate = os.posix_fallocate

    def small(file: int, start: int, count: int) -> None:
        if count > 4 * 1000:
            raise OSError(errno.ENOSPC, "full")
        allocate(file, start, count)

    monkeypatch.setattr(os, "posix_fallocate", small)
    params = parameters(((1000,), (1000,)))
    others = copies(params)
    opt, other = ours.AdamW(params, state_device=tmp_path / "state.safetensors"), ours.AdamW(others)
    train(opt, params)
    train(other, others)
    assert equal(states(opt), states(other))


def test_a_file_is_of_one_optimizer_of_the_process(tmp_path: Path) -> None:
    """A second one would replace it; one that takes the place of the first may write it."""
    path = tmp_path / "state.safetensors"

    def stepped() -> Any:
        p = torch.nn.Parameter(torch.ones(3))
        opt = ours.AdamW([p], lr=0.5, state_device=path)
        p.grad = torch.ones(3)
        opt.step()
        return opt

    first, second = stepped(), stepped()
    first.flush()
    before = path.read_bytes()
    with pytest.raises(StateError, match=r"state.safetensors: another optimizer has written its state"):
        second.flush()
    assert path.read_bytes() == before
    first.step()
    first.flush()
    del first
    gc.collect()
    second.flush()
