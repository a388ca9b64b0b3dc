"""Builds the site: ``PYTHONPATH=tools python -m pages.build`` writes output/docs, which opens from a file. Every warning is an error.

The sources are collected in output/pages: docs, and pages that are generated from the package. Programs of the pages are run.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path

from sphinx.cmd.build import build_main

from oxigrad.optim.table.row import TABLE
from pages import collect, reference

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES, SITE = ROOT / "output" / "pages", ROOT / "output" / "docs"


def llms(entries: dict[str, list[reference.Entry]]) -> str:
    """The text of llms.txt: what the site has, for programs that read it."""
    lines = ["# oxigrad", "", "> Automatic differentiation and optimizers for any array library, with a Rust core.", ""]
    for folder, title in {
        "start": "Start",
        "tutorials": "Tutorials",
        "howto": "How to",
        "": "Guide",
        "design": "Design",
    }.items():
        lines += [f"## {title}", ""]
        for page in sorted((SOURCES / folder).glob("*.md")):
            head = next((line[2:] for line in page.read_text().splitlines() if line.startswith("# ")), page.stem)
            lines.append(f"- [{head}]({page.relative_to(SOURCES).with_suffix('.html').as_posix()})")
        lines.append("")
    lines += ["## Reference", ""]
    for module, found in entries.items():
        lines.append(
            f"- [{module}](reference/{module}/index.html): {', '.join(each.name for each in found if each.kind != 'numpy')}"
        )
    return "\n".join(lines) + "\n"


def excerpt(text: str) -> str:
    """The first paragraph of a page of Markdown, without its marks."""
    body = re.sub(r"\A---\n.*?\n---\n|```.*?```|^\s*<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    paragraphs = (each.strip() for each in re.split(r"\n\s*\n", body))
    prose = (each for each in paragraphs if each and not re.match(r"[#|:!$%<]|\* |- ", each))
    said = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|[`*]", lambda link: link[1] or "", next(prose, ""))
    said = " ".join(said.split())
    return said if len(said) <= 200 else f"{said[:200].rpartition(' ')[0]} ..."


def excerpts(entries: dict[str, list[reference.Entry]]) -> dict[str, str]:
    """By page of the site: its first paragraph."""
    found = {
        file.relative_to(SOURCES).with_suffix(".html").as_posix(): excerpt(file.read_text())
        for file in sorted(SOURCES.rglob("*.md"))
    }
    found |= {f"reference/{each.page}.html": excerpt(each.about) for group in entries.values() for each in group}
    return {page: said for page, said in found.items() if said}


def names(entries: dict[str, list[reference.Entry]]) -> dict[str, list[tuple[str, str]]]:
    """By folder of the site: the names of its pages, and their files."""
    found = {
        f"reference/{module}": [(each.name, each.page.rpartition("/")[2]) for each in group]
        for module, group in entries.items()
    }
    return found | {"gallery": [(name, name) for name in TABLE]}


def scripts(entries: dict[str, list[reference.Entry]]) -> dict[str, str]:
    """The scripts that hold the data of the search and of the sidebars."""
    return {
        "excerpts.js": f"const EXCERPTS = {json.dumps(excerpts(entries), ensure_ascii=False)};\n",
        "page-names.js": f"const PAGE_NAMES = {json.dumps(names(entries))};\n",
    }


def main() -> int:
    """Builds the site; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--online", action="store_true", help="link names of other libraries, whose lists of names are fetched"
    )
    options = parser.parse_args()
    begin = time.perf_counter()
    print("1 of 2: collects the pages, and runs their programs", flush=True)
    entries = collect.collect(SOURCES)
    collected = time.perf_counter()
    print("2 of 2: builds the site, in some minutes", flush=True)
    online = ["-t", "online"] if options.online else []
    jobs = "1" if "jax" in sys.modules else "2"  # jobs are forks, which JAX's threads do not survive
    status = build_main(
        ["-b", "html", "-W", "--keep-going", "-q", "-E", "-j", jobs, "-c", str(HERE), *online, str(SOURCES), str(SITE)]
    )
    if status == 0:
        (SITE / "llms.txt").write_text(llms(entries))
        for name, text in scripts(entries).items():
            (SITE / "_static" / name).write_text(text)
        pages = sum(1 for _ in SITE.rglob("*.html"))
        print(
            f"{pages} pages: collected in {collected - begin:.0f} s, built in {time.perf_counter() - collected:.0f} s: {SITE / 'index.html'}"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
