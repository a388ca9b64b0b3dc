"""Collects the sources of the site in one folder: the pages of docs, those that are generated, and links between all of them."""

import json
import os
import platform
import re
import shutil
from pathlib import Path

from pages import optimizers, programs, reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages of the repository that stand in the site too.
PLACES = {
    "ARCHITECTURE.md": "design/architecture.md",
    "CONTRIBUTING.md": "design/contributing.md",
    "CHANGELOG.md": "design/changelog.md",
    "SECURITY.md": "design/security.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def places() -> dict[Path, str]:
    """By file of the repository: its place in the site."""
    found = {DOCS / page.relative_to(DOCS): page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))}
    found |= {ROOT / name: place for name, place in PLACES.items()}
    found |= {file: f"examples/{file.stem}.md" for file in sorted((ROOT / "examples").glob("*.py"))}
    return found


def linked(text: str, source: Path, place: str, found: dict[Path, str]) -> str:
    """The text of a page, its links leading to pages of the site. Links to other files of the repository become names of files."""

    def link(match: re.Match[str]) -> str:
        picture, label, target, anchor = match[1], match[2], match[3], match[4] or ""
        if picture or "://" in target:
            return match[0]
        file = (source.parent / target).resolve()
        if file in found:
            there = os.path.relpath(found[file], Path(place).parent)
            return f"[{label}]({there}{anchor})"
        if file.is_relative_to(DOCS):
            return match[0]
        path = f"`{file.relative_to(ROOT)}`"
        return path if label in path else f"{label} ({path})"

    return "".join(part if part.startswith("`") else LINK.sub(link, part) for part in FENCE.split(text))


def page(source: Path, place: str, found: dict[Path, str], folder: Path) -> str:
    """The text of a page of the repository, run where its libraries are installed."""
    text = linked(source.read_text(), source, place, found)
    text = text.replace("\n\n```\n", "\n```\n")  # doctest wants the empty line, which is not shown
    if not programs.blocks(text):
        return text
    missing = sorted(name for name in programs.needed(text) if not programs.is_here(name))
    if missing:
        note = f"Its programs need {', '.join(missing)}, and are run by `make test-all`."
    else:
        done = programs.run_apart(source, place, folder / Path(place).parent / "pictures")
        text = programs.with_pictures(text, done["pictures"], "pictures")
        print(f"{place:40} {done['seconds']:6.2f} s {done['megabytes']:7.0f} MB", flush=True)
        note = f"All programs of this page ran as this site was built: {done['seconds']:.1f} s, {done['megabytes']:.0f} MB at the peak, Python {platform.python_version()}."
    if place.startswith(("tutorials/", "start/", "howto/")):
        (folder / place).with_suffix(".ipynb").write_text(json.dumps(programs.notebook(source.read_text())))
        note += f" [Download it as a notebook]({Path(place).stem}.ipynb)."
    return f"{text}\n```{{div}} ran\n{note}\n```\n"


def example(file: Path) -> str:
    """The page of a program in examples."""
    text = file.read_text()
    about = text.split('"""')[1].strip().split("\n\n")
    prose = "\n\n".join(
        part if not part.startswith("    ") else f"```console\n{part.replace('    ', '$ ')}\n```" for part in about[1:]
    )
    return f"---\norphan: true\n---\n# {file.name}\n\n{about[0]}\n\n{prose}\n\n```{{literalinclude}} {os.path.relpath(file, DOCS)}\n:language: python\n```\n"


def examples(found: dict[Path, str]) -> str:
    """The list of examples."""
    lines = []
    for file, place in found.items():
        if place.startswith("examples/"):
            first = file.read_text().split('"""')[1].strip().split("\n\n")[0]
            lines.append(f"* [{file.name}](../{place}): {' '.join(first.split())}")
    return "\n".join(lines)


def others(found: dict[Path, str]) -> str:
    """The pages of docs that no list of contents names: a new page is in the guide at once."""
    indexes = [page for page in found if page.is_relative_to(DOCS) and page.name == "index.md"]
    named = {line for page in indexes for line in page.read_text().splitlines()}
    pages = [f"/{place.removesuffix('.md')}" for place in found.values() if "/" not in place]
    return "\n".join(page for page in pages if page not in named | {"/index"})


def collect(folder: Path) -> dict[str, list[reference.Entry]]:
    """Writes all sources of the site into a folder; returns the entries of the reference."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for picture in (*DOCS.rglob("*.png"), *DOCS.rglob("*.svg")):
        (folder / picture.relative_to(DOCS)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, folder / picture.relative_to(DOCS))
    found = places()
    entries = reference.write(folder / "reference")
    optimizers.write(folder / "gallery")
    for source, place in found.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        if place.startswith("examples/"):
            shutil.copy(source, folder / "examples")
            text = example(source).replace(os.path.relpath(source, DOCS), source.name)
        else:
            text = page(source, place, found, folder)
            for mark, made in MARKS.items():
                if mark in text:
                    text = text.replace(mark, made(found))
            if place == "gallery/index.md":
                text = optimizers.linked(text)
        (folder / place).write_text(text)
    return entries


# What pages state as a comment, and get from the repository.
MARKS = {
    "<!-- examples -->": examples,
    "<!-- optimizers -->": lambda _: optimizers.index(),
    "<!-- panels -->": lambda _: optimizers.panels(),
    "% other pages": others,
    "% modules": lambda _: "\n".join(f"{name}/index" for name in reference.MODULES),
    "<!-- modules -->": lambda _: modules(),
}


def modules() -> str:
    """The table of modules."""
    lines = ["| module | |", "|---|---|"]
    lines += [f"| {{doc}}`{name} </reference/{name}/index>` | {about} |" for name, about in reference.MODULES.items()]
    return "\n".join(lines)
