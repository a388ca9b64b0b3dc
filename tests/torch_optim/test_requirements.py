"""Requirements of the PyTorch ecosystem: oxigrad.torch meets all 22; docs/torch.md states which ones peers meet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("oxigrad.torch")

import optimizer_tables  # noqa: E402
from torch_problems import BITSANDBYTES, OURS, TORCH, Library  # noqa: E402
from torch_requirements import REQUIREMENTS, outcome  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

Requirement = Callable[[Library], None]
numbered = pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.__name__)


@numbered
def test_oxigrad_has_the_property(requirement: Requirement) -> None:
    if requirement.__name__ == "skipped_steps_are_detected":
        pytest.importorskip("accelerate")
    if requirement.__name__ == "state_is_lazy" and torch.get_default_device().type != "cpu":
        pytest.skip("SparseAdam updates tensors in host memory")
    requirement(OURS)


def test_the_properties_are_numbered() -> None:
    assert [int(optimizer_tables.sentence(found).partition(".")[0]) for found in REQUIREMENTS] == [*range(1, 23)]


@numbered
@pytest.mark.parametrize("peer", [TORCH, BITSANDBYTES], ids=lambda peer: peer.name)
def test_the_page_states_the_properties_of_peers(peer: Library, requirement: Requirement) -> None:
    """Compared for the release that the page names; another release may have changed."""
    pytest.importorskip(peer.name)
    if requirement.__name__ == "skipped_steps_are_detected":
        pytest.importorskip("accelerate")
    if requirement.__name__ == "state_is_lazy" and torch.get_default_device().type != "cpu":
        pytest.skip("SparseAdam updates tensors in host memory")
    releases, rows = optimizer_tables.documented()
    found = outcome(requirement, peer)
    if optimizer_tables.version(peer.name) == releases[peer.name]:
        assert rows[optimizer_tables.sentence(requirement)][peer.name] == found, "make generated"


def test_the_page_lists_all_properties() -> None:
    _, rows = optimizer_tables.documented()
    assert [*rows] == [optimizer_tables.sentence(requirement) for requirement in REQUIREMENTS]
    assert {row["oxigrad.torch"] for row in rows.values()} == {"yes"}


def test_the_page_lists_all_optimizers_and_arguments() -> None:
    """Arguments are compared for the release of torch that the page names."""
    releases, _ = optimizer_tables.documented()
    pages, ours = (text.splitlines() for text in (optimizer_tables.CLASSES.printed(), optimizer_tables.classes()))
    if optimizer_tables.version("torch") != releases["torch"]:
        pages, ours = ([optimizer_tables.cells(line)[0] for line in lines] for lines in (pages, ours))
    assert pages == ours, "make generated"
