"""Diagrams of programs."""

from xml.etree import ElementTree

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
