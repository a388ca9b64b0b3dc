"""Builds the site: ``PYTHONPATH=tools python -m pages.build`` writes output/docs, which opens from a file. Every warning is an error.

The sources are collected in output/pages: docs, and pages that are generated from the package. Programs of the pages are run.
"""

import argparse
import sys
import time
from pathlib import Path

from sphinx.cmd.build import build_main

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


def main() -> int:
    """Builds the site; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--online", action="store_true", help="link names of other libraries, whose lists of names are fetched"
    )
    options = parser.parse_args()
    begin = time.perf_counter()
    entries = collect.collect(SOURCES)
    collected = time.perf_counter()
    online = ["-t", "online"] if options.online else []
    status = build_main(
        ["-b", "html", "-W", "--keep-going", "-q", "-E", "-j", "2", "-c", str(HERE), *online, str(SOURCES), str(SITE)]
    )
    if status == 0:
        (SITE / "llms.txt").write_text(llms(entries))
        pages = sum(1 for _ in SITE.rglob("*.html"))
        print(
            f"{pages} pages: collected in {collected - begin:.0f} s, built in {time.perf_counter() - collected:.0f} s: {SITE / 'index.html'}"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
