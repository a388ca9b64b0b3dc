"""Diagrams of programs."""

import itertools
import random
import re
from xml.etree import ElementTree

import pytest

from oxigrad.autodiff.inspection.diagram import Box, mermaid, svg

BOXES: list[Box] = [("input", 'a<"b">', []), ("constant", "2.0", []), ("op", "v1 = multiply", [0, 1])]


def test_mermaid_has_a_line_a_box_and_a_line_an_arrow() -> None:
    assert mermaid(BOXES, 0).splitlines() == [
        "flowchart TD",
        '    n0(["a#60;#34;b#34;#62;"])',
        '    n1("2.0")',
        '    n2["v1 = multiply"]',
        "    n0 --> n2",
        "    n1 --> n2",
    ]
    assert mermaid(BOXES, 7).endswith('more["7 more entries"]\n')


def test_boxes_lie_below_their_arguments_and_beside_each_other() -> None:
    root = ElementTree.fromstring(svg(BOXES, 0))
    rects = root.findall("{http://www.w3.org/2000/svg}rect")
    (ax, ay, aw), (bx, by, _), (_, cy, _) = [
        (int(r.attrib["x"]), int(r.attrib["y"]), int(r.attrib["width"])) for r in rects
    ]
    assert ay == by and bx >= ax + aw and cy > ay + 28
    assert all(int(r.attrib["x"]) + int(r.attrib["width"]) < int(root.attrib["width"]) for r in rects)


def test_svg_escapes_its_text() -> None:
    drawn = svg(BOXES, 7)
    assert "a&#60;&#34;b&#34;&#62;" in drawn and "7 more entries" in drawn and drawn.endswith("</svg>\n")
    assert "\x01" not in svg([("input", "a\x01b", [])], 0)


def test_a_long_label_is_cut() -> None:
    assert len(svg([("input", "x" * 1000, [])], 0)) < 1000 and len(mermaid([("input", "x" * 1000, [])], 0)) < 100


def test_an_empty_program_has_a_diagram() -> None:
    assert mermaid([], 0) == "flowchart TD\n" and ElementTree.fromstring(svg([], 0)) is not None


def program(seed: int, count: int) -> list[Box]:
    """A random program, in which many boxes read ones far above them."""
    draw = random.Random(seed)
    reads = [[draw.randrange(at) for _ in range(draw.randrange(min(at, 2) + 1))] for at in range(count)]
    return [("op", "x" * draw.randrange(1, 30), read) for read in reads]


CHAIN: list[Box] = [("input", "x", []), *(("op", f"v{at}", [at, 0]) for at in range(6))]


@pytest.mark.parametrize("boxes", [BOXES, CHAIN, *(program(seed, 25) for seed in range(20))])
def test_no_line_passes_behind_a_box(boxes: list[Box]) -> None:
    root = ElementTree.fromstring(svg(boxes, 0))
    rects = [
        tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        for rect in root.findall("{http://www.w3.org/2000/svg}rect")
    ]
    paths = root.findall("{http://www.w3.org/2000/svg}path")
    assert len(paths) == sum(len(arguments) for _, _, arguments in boxes)
    for path in paths:
        points: list[tuple[float, float]] = []
        for kind, first, second in re.findall(r"([MLV])(\d+)(?: (\d+))?", path.attrib["d"]):
            points.append((points[-1][0], float(first)) if kind == "V" else (float(first), float(second)))
        assert path.attrib["fill"] == "none"
        for (ax, ay), (bx, by) in itertools.pairwise(points):
            for at in (share / 64 for share in range(1, 64)):
                x, y = ax + at * (bx - ax), ay + at * (by - ay)
                assert not any(left < x < left + wide and up < y < up + high for left, up, wide, high in rects)
        assert all(0 < x < float(root.attrib["width"]) for x, _ in points)
