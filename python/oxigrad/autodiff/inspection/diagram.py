"""Diagrams of recorded programs: `Tape.to_mermaid` and `Tape.to_svg`."""

from collections.abc import Sequence

# A box of a diagram: its kind ("input", "op" or "constant"), its label, and the positions of its arguments among the
# boxes before it.
Box = tuple[str, str, Sequence[int]]

_BRACKETS = {"input": ("([", "])"), "op": ("[", "]"), "constant": ("(", ")")}
_FILL = {"input": "#cfe8ff", "op": "#ffffff", "constant": "#eeeeee"}

# The longest label, in characters, and lengths in pixels.
_LABEL = 40
_CHARACTER = 8
_HEIGHT = 28
_GAP_X = 16
_GAP_Y = 32
_MARGIN = 12
_LANE = 4


def mermaid(boxes: Sequence[Box], left_out: int) -> str:
    """A program as a Mermaid flow chart, with a note of the number of omitted entries.

    >>> print(mermaid([("input", "x", []), ("op", "v1 = sin", [0])], 0), end="")
    flowchart TD
        n0(["x"])
        n1["v1 = sin"]
        n0 --> n1
    """
    lines = ["flowchart TD"]
    for number, (kind, label, arguments) in enumerate(boxes):
        start, end = _BRACKETS[kind]
        lines.append(f'    n{number}{start}"{_escaped(_cut(label), "#{};")}"{end}')
        lines += [f"    n{argument} --> n{number}" for argument in arguments]
    if left_out:
        lines.append(f'    more["{left_out} more entries"]')
    return "\n".join(lines) + "\n"


def svg(boxes: Sequence[Box], left_out: int) -> str:
    """A program as an SVG drawing: each box is in the layer below its lowest argument, with lines from its arguments.

    A line between two layers passes the boxes of a layer in a separate lane.
    """
    labels = [_cut(label) for _, label, _ in boxes]
    places, lanes, right = _places(labels, [arguments for _, _, arguments in boxes])
    width = max(160, right) + _MARGIN
    bottom = max([_MARGIN, *(y + _HEIGHT for _, y, _ in places)])
    height = bottom + (_GAP_Y if left_out else _MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">'
    )
    lines = [head]
    for (_, _, arguments), (x, y, width) in zip(boxes, places, strict=True):
        for argument in arguments:
            from_x, from_y, from_width = places[argument]
            path = f"M{from_x + from_width // 2} {from_y + _HEIGHT}"
            for beside in range(from_y + _HEIGHT + _GAP_Y, y, _HEIGHT + _GAP_Y):
                path += f"L{lanes[argument, beside]} {beside}V{beside + _HEIGHT}"
            lines.append(f'<path d="{path}L{x + width // 2} {y}" fill="none" stroke="#888888"/>')
    for (kind, _, _), label, (x, y, width) in zip(boxes, labels, places, strict=True):
        lines.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" rx="5" fill="{_FILL[kind]}" stroke="#444444"/>'
            f'<text x="{x + width // 2}" y="{y + 18}" text-anchor="middle">{_escaped(label, "&#{};")}</text>'
        )
    if left_out:
        lines.append(f'<text x="{_MARGIN}" y="{height - _MARGIN}">{left_out} more entries</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _places(
    labels: Sequence[str], arguments: Sequence[Sequence[int]]
) -> tuple[list[tuple[int, int, int]], dict[tuple[int, int], int], int]:
    """The left edge, the upper edge and the width of each box; lanes; and the right edge of all.

    A lane belongs to a layer that a line passes. Lanes are keyed by the box that the line comes from and the upper edge
    of the layer. Boxes and lanes of a layer go from left to right.
    """
    layers: list[int] = []
    ends: list[int] = []
    places: list[tuple[int, int, int]] = []
    lanes: dict[tuple[int, int], int] = {}

    def taken(layer: int, width: int) -> int:
        ends.extend([_MARGIN] * (layer + 1 - len(ends)))
        start = ends[layer]
        ends[layer] += width + _GAP_X
        return start

    for label, read in zip(labels, arguments, strict=True):
        layer = max((layers[argument] + 1 for argument in read), default=0)
        for argument in read:
            for passed in range(layers[argument] + 1, layer):
                if (argument, _top(passed)) not in lanes:
                    lanes[argument, _top(passed)] = taken(passed, _LANE) + _LANE // 2
        layers.append(layer)
        width = (len(label) + 2) * _CHARACTER
        places.append((taken(layer, width), _top(layer), width))
    return places, lanes, max(ends, default=_GAP_X) - _GAP_X


def _top(layer: int) -> int:
    return _MARGIN + layer * (_HEIGHT + _GAP_Y)


def _cut(label: str) -> str:
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"


def _escaped(text: str, template: str) -> str:
    """The text without control characters, and with characters that are special in the language escaped."""
    printable = (c for c in text if not ("\0" <= c < " " or "\x7f" <= c <= "\x9f"))
    return "".join(template.format(ord(c)) if c in "&<>\"'#;`" else c for c in printable)
