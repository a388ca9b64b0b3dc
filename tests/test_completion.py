"""Editors that complete names by jedi show the public names of `xp` and its modules, and what an argument does."""

import importlib

import pytest

import oxigrad as ox

jedi = pytest.importorskip("jedi")


def completed(module: str) -> set[str]:
    code = f"import {module} as m\nm."
    return {each.name for each in jedi.Script(code).complete(2, 2) if not each.name.startswith("_")}


def test_completions_of_xp_are_its_public_names() -> None:
    unlisted = {*ox.xp._unlisted, "random"}  # pyright: ignore[reportAttributeAccessIssue] - which the stub has too, as programs call them
    found = completed("oxigrad.xp")
    assert len(found) > 400
    assert {*ox.xp.__all__} <= found and found - unlisted <= {*ox.xp.__all__}


PARTS = "fft integrate interpolate linalg ndimage polynomial signal spatial spatial.distance special stats".split()


@pytest.mark.parametrize("part", PARTS)
def test_completions_of_a_module_of_xp_are_its_public_names(part: str) -> None:
    module = f"oxigrad.xp.{part}"
    assert completed(module) == {*importlib.import_module(module).__all__}


def test_the_signature_of_an_optimizer_has_the_names_of_its_arguments() -> None:
    (signature,) = jedi.Script("import oxigrad.optim as m\nm.AdamW(").get_signatures(2, 8)
    assert {"learning_rate", "beta1", "slot_dtype"} <= {each.name for each in signature.params}
    assert "Decay of the moving mean of gradients" in signature.docstring()
