"""The documentation of arguments: every parameter of a public function or class has a sentence that says what it does."""

import importlib
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from oxigrad import optim
from oxigrad.optim.settings import documentation
from oxigrad.optim.settings.config import OPTIONS
from oxigrad.optim.table.row import TABLE
from oxigrad.optim.table.transforms import TRANSFORMS
from oxigrad.rules.core.arguments import NOTES, OPTAX, TORCH
from oxigrad.rules.core.ranges import sentence

MODULES = {
    "oxigrad": (),
    "oxigrad.tree": (),
    "oxigrad.schedules": (),
    "oxigrad.optim": (),
    "oxigrad.distributed": (),
    "oxigrad.torch": ("torch",),
    "oxigrad.optax": ("jax", "optax"),
    "oxigrad.testing": (),
    "oxigrad.cuda": (),
    "oxigrad.scipy": ("scipy",),
    "oxigrad.interop.torch": ("torch",),
    "oxigrad.interop.jax": ("jax",),
    "oxigrad.interop.autograd": ("autograd",),
    "oxigrad.extend": (),
}
# What makes them is another function, whose arguments are described; a user does not call them.
MADE = {
    "oxigrad": "Variable",
    "oxigrad.optim": "ChainPart Changes Optimizer ParameterGroup RateRange RuleOptimizer Slots Transform",
    "oxigrad.distributed": "Communicator Header Layout Span WorkerDevice WorkerReport",
    "oxigrad.optax": "State",
    "oxigrad.tree": "Key Structure",
    # The last takes bytes; those before it take a value, of which the sentence on the function speaks.
    "oxigrad.extend": "Adapter Domain Recording Worker adapter_of as_array config_of namespace crc32c",
}


def sentences(doc: str) -> dict[str, str]:
    """The texts of the arguments in the sections of a docstring."""
    found: dict[str, str] = {}
    names: list[str] = []
    inside = False
    for line in inspect.cleandoc(doc).splitlines():
        if heading := re.fullmatch(r"(\w+):", line):
            inside = heading[1] == "Args" or heading[1].lower() in documentation.SECTIONS
        elif line and not line.startswith(" "):
            inside = False
        elif inside and (start := re.match(r" {4}([*\w]+(?:, [*\w]+)*): (.*)", line)):
            names = [name.strip("*") for name in start[1].split(", ")]
            found |= dict.fromkeys(names, start[2])
        elif inside:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def functions(module: str) -> Iterator[tuple[str, Any]]:
    values = importlib.import_module(module)
    for name in values.__all__:
        value = getattr(values, name)
        is_error = inspect.isclass(value) and issubclass(value, BaseException)
        if (
            callable(value)
            and not inspect.ismodule(value)
            and not is_error
            and name not in MADE.get(module, "").split()
        ):
            yield name, value


@pytest.mark.parametrize("module", MODULES)
def test_every_argument_has_a_sentence(module: str) -> None:
    for library in MODULES[module]:
        pytest.importorskip(library)
    faults = []
    for name, value in functions(module):
        described = sentences(inspect.getdoc(value) or "")
        for argument in inspect.signature(value).parameters:
            text = re.split(r"(?:^|\s)(?:[^.]*; d|D)efault ", described.get(argument, ""))[0]
            words = {word.lower() for word in re.findall(r"\w+", text)}
            if len(text) < 20 or words <= {argument, *argument.split("_"), "the", "of", "a", "is"}:
                faults.append(f"{name}({argument}): {text!r}")
        if unknown := described.keys() - inspect.signature(value).parameters.keys():
            faults.append(f"{name} has no {', '.join(sorted(unknown))}")
    assert not faults


def test_the_rows_of_hyperparameters_are_those_of_the_rules() -> None:
    for name, cls in {**{name: row.optimizer for name, row in TABLE.items()}, **TRANSFORMS}.items():
        rows = {row.name: row for row in documentation.hyperparameters(cls._rule)}
        assert [*rows] == [*cls._declared], name
        text = " ".join((cls.__doc__ or "").split())
        for each, declared in cls._declared.items():
            assert rows[each].default == declared.default
            domain = declared.domain
            assert domain is None or domain.expected() in rows[each].range, (name, each)
            assert f"{each}: {rows[each].sentence}" in text, (name, each)


def test_every_note_is_of_an_argument() -> None:
    declared = {name for row in TABLE.values() for name in row.optimizer._declared}
    declared |= {name for cls in TRANSFORMS.values() for name in cls._declared}
    assert NOTES.keys() <= {*declared, *OPTIONS, "compat"}
    assert {*OPTIONS, "compat"} <= NOTES.keys()
    for note in [*NOTES.values(), *TORCH.values(), *OPTAX.values()]:
        assert note.sentence.endswith(".") and len(note.sentence) >= 20
        assert not note.section or note.section in documentation.SECTIONS


def test_a_rule_of_a_user_says_what_its_hyperparameters_do() -> None:
    from typing import Annotated

    from oxigrad.rules.core.ranges import NonNegative

    def descent(xp, p, g, *, rate: Annotated[NonNegative, "Length of a step along the gradient."] = 0.1, other=1.0):
        """Gradient descent."""
        return p - rate * other * g

    assert sentence(descent, "rate") == "Length of a step along the gradient." and sentence(descent, "other") == ""
    cls = optim.define(descent, "Descent")
    assert sentences(cls.__doc__ or "")["rate"] == (
        "Length of a step along the gradient. A number in [0, inf), or a schedule; default 0.1."
    )
    with pytest.raises(ValueError, match=r"rate is -1.0: expected a number in \[0, inf\)"):
        cls(rate=-1.0)


def test_help_and_instances_show_the_composed_documentation() -> None:
    for shown in (pydoc.render_doc(optim.AdamW, renderer=pydoc.plaintext), optim.AdamW().__doc__):
        assert "beta1: Decay of the moving mean of gradients" in shown and "Precision:" in shown
    assert "in subclass" not in (type("Mine", (optim.AdamW,), {}).__doc__ or "")


def test_the_rows_are_read_with_documentation_alone() -> None:
    code = (
        "import sys, oxigrad.optim as optim; name = 'oxigrad.rules.core.arguments'; assert name not in sys.modules; "
        "optim.AdamW.__doc__; assert name in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
