"""docs/gpu.md states what is proved, by tests that exist."""

import re
from collections.abc import Callable
from types import ModuleType

import arrays
import numpy as np
from mock_driver import MockDriver

import gpu_table
import oxigrad as ox
from oxigrad import xp


def snippet(title: str) -> str:
    """The program after a line of the page."""
    page = gpu_table.PRINTED.path.read_text(encoding="utf-8")
    found = re.search(rf"^{title}.*?```\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def test_the_program_for_cupy_runs_over_arrays_like_its(mock: MockDriver) -> None:
    names = {"cupy": arrays.namespace, "oxigrad": ox, "loss": lambda model: xp.sum((model["w"] - 1.0) ** 2)}
    exec(snippet("With CuPy:"), names)  # noqa: S102 - of this repository
    w = arrays.host(names["model"]["w"])
    assert w.shape == (1000, 1000)
    np.testing.assert_allclose(w, 1e-3, rtol=1e-4)


def test_the_program_for_pytorch_runs_over_tensors(library: Callable[[str], ModuleType]) -> None:
    torch = library("torch")
    module = torch.nn.Linear(3, 2)
    module(torch.ones(3)).sum().backward()
    before = module.weight.detach().clone()
    exec(snippet("With PyTorch,"), {"oxigrad": ox, "module": module})  # noqa: S102 - of this repository
    torch.testing.assert_close(module.weight.detach(), before * (1 - 1e-5) - 1e-3)


def test_the_page_states_the_table() -> None:
    assert gpu_table.PRINTED.printed() == gpu_table.table(), "make generated"


def test_every_named_test_exists() -> None:
    assert gpu_table.missing() == []
