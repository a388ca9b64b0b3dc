"""Checks the site that was built: ``PYTHONPATH=tools python -m pages.check`` follows every link, and opens pages in Chromium if there is one.

A page that logs an error or is wider than the screen of a phone, a picture that is not seen, a search without the page that it should find: each is printed, and the exit
status is 1. ``--screenshots FOLDER`` saves how pages look on a desktop, on a phone and in the dark.
"""

import argparse
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).parents[2] / "output" / "docs"
# Pages to open, words to search, and the page that must be among what is found.
OPENED = [
    "index.html",
    "tutorials/gradients.html",
    "tutorials/recording.html",
    "tutorials/workers.html",
    "gallery/index.html",
    "gallery/AdamW.html",
    "numpy.html",
    "reference/oxigrad/grad.html",
]
SEARCHED = {
    "AdamW": "reference/oxigrad.optim/AdamW.html",
    "value_and_grad": "reference/oxigrad/value_and_grad.html",
    "clip": "howto/clip.html",
}
SCREENS = {"desktop": (1400, 1600), "phone": (500, 1600)}


class Page(html.parser.HTMLParser):
    """The links, pictures and anchors of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what an element refers to, and its anchor."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name == "id" and value:
                self.anchors.add(value)


def broken() -> Iterator[str]:
    """The links to pages, files and anchors that are not there."""
    pages = {file: Page(file) for file in SITE.rglob("*.html") if "_static" not in file.parts}
    for file, page in pages.items():
        for target in dict.fromkeys(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not there.exists():
                yield f"{file.relative_to(SITE)}: {target} is not there"
            elif (
                parts.fragment
                and there in pages
                and unquote(parts.fragment) not in pages[there].anchors | {"", "search-documents"}
            ):
                yield f"{file.relative_to(SITE)}: {target} has no such place"


# --- a browser ---------------------------------------------------------------------------------------------------------------


class Browser:
    """Chromium without a window, in a process for each page."""

    def __init__(self, program: str, folder: Path) -> None:
        self.command = [program, "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        self.command += ["--enable-logging=stderr", f"--user-data-dir={folder}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self.command.append("--no-sandbox")  # which root cannot have

    def run(self, address: str, *options: str) -> tuple[str, list[str]]:
        """The page as a browser has it after its programs, and the errors that it logged."""
        done = subprocess.run(
            [*self.command, *options, address], capture_output=True, text=True, timeout=120, check=False
        )
        logged = re.findall(r"CONSOLE[^\]]*\] \"(.*)\", source", done.stderr)
        return done.stdout, [line for line in logged if not line.startswith(("[PST]", "Got invalid theme mode"))]

    def opened(self, page: str) -> Iterator[str]:
        """The faults of a page: errors, and pictures that are not seen."""
        # The page tells of its pictures itself: of those that it has read, the width.
        text = (SITE / page).read_text()
        probe = SITE / page.replace("/", "-").join(("probe-", ""))
        probe.write_text(
            re.sub(r"(<head[^>]*>)", rf'\1<base href="{(SITE / page).as_uri()}">', text, count=1).replace(
                "</body>", PROBE + "</body>"
            )
        )
        try:
            for screen, (width, height) in SCREENS.items():
                size = f"--window-size={width},{height}"
                found, errors = self.run(probe.as_uri(), size, "--virtual-time-budget=10000", "--dump-dom")
                yield from (f"{page}, {screen}: {fault}" for fault in [*errors, *told(found)])
        finally:
            probe.unlink()

    def searched(self, words: str, expected: str) -> Iterator[str]:
        """The faults of a search."""
        found, errors = self.run(
            f"{(SITE / 'search.html').as_uri()}?q={words}", "--virtual-time-budget=15000", "--dump-dom"
        )
        yield from (f"search of {words}: {error}" for error in errors)
        results = found.partition('id="search-results"')[2]
        if f'href="{expected}' not in results:
            yield f"search of {words}: {expected} is not found"


def told(found: str) -> Iterator[str]:
    """The faults that a page with the probe tells of itself."""
    for name, what in {
        "unseen": "pictures that are not seen",
        "wide": "wider than the screen",
        "versions": "no versions",
    }.items():
        said = re.search(rf'data-{name}="([^"]*)"', found)
        if said is None or said[1]:
            yield f"{what}: {said[1] if said else 'the page did not load'}"


PROBE = """<script>addEventListener("load", () => {
  for (const image of document.images) image.loading = "eager";
  const unseen = () => [...document.images].filter((image) => !image.complete || !image.naturalWidth).map((image) => image.src);
  const wide = () => [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1
    && !one.closest("pre, table, svg, .formula, .pst-scrollable-table-container")).map((one) => one.tagName);
  setTimeout(() => {
    document.body.dataset.unseen = unseen().join(" ");
    document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth + 1 ? wide().join(" ") || "the page" : "";
    document.body.dataset.versions = document.querySelector("details.versions li a") ? "" : "none";
  }, 1000);
});</script>"""


def screenshots(browser: Browser, folder: Path) -> None:
    """Saves how pages look."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in OPENED:
        for screen, (width, height) in SCREENS.items():
            for theme, colours in {"light": 1, "dark": 0}.items():
                file = folder / f"{page.removesuffix('.html').replace('/', '-')}-{screen}-{theme}.png"
                looks = [f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={colours}"]
                browser.run((SITE / page).as_uri(), *looks, f"--screenshot={file}")


def main() -> int:
    """Prints what is wrong; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    wrong = [*broken()]
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        print("make docs: SKIPPED the pages in a browser: no Chromium is installed", file=sys.stderr)
    else:
        with tempfile.TemporaryDirectory() as folder:
            browser = Browser(program, Path(folder))
            for page in OPENED:
                wrong += browser.opened(page)
            for words, expected in SEARCHED.items():
                wrong += browser.searched(words, expected)
            if options.screenshots:
                screenshots(browser, options.screenshots)
    print(
        "\n".join(wrong) or f"every link leads somewhere{'' if program is None else ', pages open, and searches find'}"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
