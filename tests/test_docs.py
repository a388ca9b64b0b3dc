"""Documentation: the examples in docstrings and pages run, and the stub has the types of the compiled module."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import compiled_stub
import oxigrad as ox
from oxigrad import _core
from oxigrad.ops.backends import dispatch
from pages import programs

ROOT = Path(__file__).parent.parent
MODULES = ["oxigrad", *(module.name for module in pkgutil.walk_packages(ox.__path__, "oxigrad."))]
COMPILED = [name for name, value in vars(_core).items() if inspect.isclass(value) or inspect.isbuiltin(value)]
PAGES = [str(page.relative_to(ROOT)) for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])]


@pytest.fixture(autouse=True)
def default_precision() -> None:
    """JAX computes in float32 unless told otherwise, as tests before in this process may have done."""
    if (jax := sys.modules.get("jax")) is not None:
        jax.config.update("jax_enable_x64", False)


@pytest.fixture(autouse=True)
def no_adapters_are_left() -> Iterator[None]:
    """Removes the adapters that examples register: they would take effect in later tests."""
    before = {*dispatch.REGISTERED}
    yield
    for library in dispatch.REGISTERED.keys() - before:
        del dispatch.REGISTERED[library]
        dispatch.forget_library(library)


def run(examples: doctest.DocTest) -> None:
    """Runs the examples; fails with what they gave where it is not what they say."""
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.one_in(3)
def test_examples_in_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"{name} needs {error.name}")
    theirs = {f"{name}.{key}" for key, value in vars(module).items() if has_text_of_numpy(key, value)}
    for examples in doctest.DocTestFinder().find(module):
        if examples.name not in theirs:
            run(examples)


def has_text_of_numpy(name: str, value: object) -> bool:
    """Whether a function has the documentation of NumPy's function of this name, which NumPy tests."""
    return callable(value) and (value.__doc__ or "") == getattr(getattr(np, name, None), "__doc__", None)


@pytest.mark.parametrize("name", COMPILED)
def test_examples_in_compiled_docstrings(name: str) -> None:
    value = getattr(_core, name)
    members = [member for member in vars(value).values() if inspect.isroutine(member)] if inspect.isclass(value) else []
    for documented in (value, *members):
        run(doctest.DocTestParser().get_doctest(inspect.getdoc(documented) or "", {}, name, None, None))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.one_in(8)
def test_examples_in_pages(page: str, tmp_path: Path) -> None:
    """All Python blocks of a page, one after the other."""
    text = (ROOT / page).read_text()
    for name in programs.needed(text):
        pytest.importorskip(name)
    found = programs.run(text, page, tmp_path)
    assert not found["failures"], found["failures"]


def test_each_picture_stands_in_a_page_and_each_link_leads_somewhere() -> None:
    shown, missing = set(), []
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.DOTALL)
        for is_picture, target in re.findall(r"(!?)\[[^\]]*\]\(([^)#\s]+)", text):
            if not target.startswith(("https://", "http://")):
                file = ((ROOT / page).parent / target).resolve()
                shown |= {file} if is_picture else set()
                missing += [] if file.exists() else [f"{page}: {target}"]
    assert not missing
    shown |= {
        ROOT / "docs/design" / name
        for name in re.findall(r"{figure} (\S+)", (ROOT / "docs/design/index.md").read_text())
    }
    assert shown >= {file for kind in ("png", "svg") for file in (ROOT / "docs").resolve().glob(f"**/*.{kind}")}


def test_the_readme_links_every_page() -> None:
    text = (ROOT / "README.md").read_text()
    assert not [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name}" not in text]


@pytest.mark.slow
def test_types_of_the_compiled_module(tmp_path: Path) -> None:
    allowed, config = tmp_path / "allowed", tmp_path / "mypy.ini"
    # PyO3 lists every name in `__all__`, and so does the stub by stating it; the slots `tp_getattro` have no names.
    allowed.write_text(
        "oxigrad._core.__all__\noxigrad._core.Function.__getattr__\noxigrad._core.Variable.__getattr__\n"
        # Set by Python, for functions of other libraries that find a variable.
        "oxigrad._core.Variable.__jax_array__\noxigrad._core.Variable.__torch_function__\n"
        + "".join(f"oxigrad._core.Variable.{name}\n" for name in compiled_stub.methods_of_arrays())
    )
    config.write_text("[mypy]\nfollow_imports = skip\n")  # or it would read PyTorch and JAX where they are installed
    command = [sys.executable, "-m", "mypy.stubtest", "oxigrad._core", "--allowlist", allowed]
    command += ["--mypy-config-file", config]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
