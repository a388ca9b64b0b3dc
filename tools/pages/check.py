"""Checks the site that was built: ``PYTHONPATH=tools python -m pages.check`` follows every link, and opens pages in Chromium if there is one.

Headings, texts of pictures, names of links, and contrasts of text and code are checked by rules of WCAG. A page that logs an error or is wider than the screen of a phone, a picture that is not seen, a search without the page that it should find: each is printed, and the exit
status is 1. ``--screenshots FOLDER`` saves how pages look on a desktop, a tablet and a phone, in both themes.
"""

import argparse
import html.parser
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).parent
SITE = HERE.parents[1] / "output" / "docs"
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
    "reference/oxigrad.optax/adamw.html",
]
SEARCHED = {
    "AdamW": "reference/oxigrad.optim/AdamW.html",
    "value_and_grad": "reference/oxigrad/value_and_grad.html",
    "clip gradient": "howto/clip.html",
}
SCREENS = {"desktop": (1400, 1600), "tablet": (900, 1600), "phone": (500, 1600)}


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


# --- accessibility -----------------------------------------------------------------------------------------------------------


class Outline(html.parser.HTMLParser):
    """What readers of a page by ear need: its language, its headings, texts of pictures, and names of links and fields."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.headings: list[int] = []
        self._named: list[tuple[str, str, bool]] = []
        self.has_language = False
        self.feed(text)
        if not self.has_language:
            self.faults.append("no language")
        if self.headings.count(1) != 1:
            self.faults.append(f"{self.headings.count(1)} headings of the first level")
        for before, after in itertools.pairwise(self.headings):
            if after > before + 1:
                self.faults.append(f"a heading of level {after} below one of level {before}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        given = dict(attrs)
        label = given.get("aria-label") or given.get("title") or ""
        if tag == "html":
            self.has_language = bool(given.get("lang"))
        elif re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        elif tag == "img":
            if not (given.get("alt") or "").strip():
                self.faults.append(f"a picture without a text: {given.get('src')}")
            self._fill()
        elif tag == "input" and given.get("type") not in ("hidden", "checkbox") and not (label or given.get("id")):
            self.faults.append("a field without a name")
        elif tag in ("a", "button") and (tag == "button" or "href" in given):
            self._named.append((tag, given.get("href") or "", bool(label)))
        elif tag == "svg" or "fa-" in (given.get("class") or ""):
            self._fill()

    def handle_data(self, data: str) -> None:
        """Notes the text of a link."""
        if data.strip():
            self._fill()

    def handle_endtag(self, tag: str) -> None:
        """Ends a link, which has a text or a name by now."""
        if self._named and tag == self._named[-1][0]:
            kind, target, has_name = self._named.pop()
            if not has_name:
                self.faults.append(f"a {'link' if kind == 'a' else kind} without a name: {target}")

    def _fill(self) -> None:
        self._named = [(tag, target, True) for tag, target, _ in self._named]


def luminance(colour: str) -> float:
    """The relative luminance of a colour such as #9a3412, by WCAG 2."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """The ratio of contrast of two colours, by WCAG 2: 4.5 is what text needs."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


# The background of text and of code in each theme.
GROUNDS = {"light": "#ffffff", "dark": "#14181e"}
CODE_GROUNDS = {"light": "#f3f4f5", "dark": "#29313d"}


def faint(style: str, grounds: dict[str, str]) -> Iterator[str]:
    """The colours of text in a style sheet that have too little contrast; rules with a background are left out."""
    for theme, selector, rules in re.findall(r'html\[data-theme="(\w+)"\]([^{]*){([^}]*)}', style):
        for name, digits in re.findall(r"(?<![\w-])(--[\w-]+|color): #([\da-fA-F]{6}|[\da-fA-F]{3})\b", rules):
            colour = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
            if "background-color: #" not in rules and (ratio := contrast(f"#{colour}", grounds[theme])) < 4.5:
                yield f"{selector.strip()} {name} has a contrast of {ratio:.1f} in the {theme} theme"


def inaccessible() -> Iterator[str]:
    """The faults of all pages for readers that do not see them well."""
    for file, grounds in {
        HERE / "static" / "oxigrad.css": GROUNDS,
        SITE / "_static" / "pygments.css": CODE_GROUNDS,
    }.items():
        yield from (f"{file.name}: {fault}" for fault in faint(file.read_text(), grounds))
    for file in SITE.rglob("*.html"):
        if "_static" not in file.parts:
            yield from (f"{file.relative_to(SITE)}: {fault}" for fault in Outline(file.read_text()).faults)


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
        pages = [re.sub(r"[?#].*", "", page) for page in re.findall(r'<li[^>]*><a href="([^"]+)"', results)]
        if expected not in pages:
            yield f"search of {words}: {expected} is not found"
        elif "excerpt" not in results or len(pages) != len({*pages}):
            yield f"search of {words}: no excerpt, or a page twice"
        elif words == "clip gradient" and pages[0] != expected:
            yield f"search of {words}: {pages[0]} comes before {expected}"


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
    wrong = [*broken(), *inaccessible()]
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
        "\n".join(wrong)
        or f"every link leads somewhere, all pages are accessible{'' if program is None else ', pages open, and searches find'}"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
