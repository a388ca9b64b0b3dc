"""The figures of README.md and of the first page of the site.

They come from `benches/history/rows.jsonl`, which `make track` and `make times` write, and those of a GPU from the table of
docs/design/performance.md. The picture is docs/figures.svg.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

from printed_tables import PrintedTable

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benches" / "history" / "rows.jsonl"
PICTURE = ROOT / "docs" / "figures.svg"
# The pages with the figures, and the path from each to the picture.
PAGES = {
    PrintedTable(page, "figures"): folder
    for page, folder in {"../README.md": "docs/", "index.md": "", "design/performance.md": "../"}.items()
}
# What the rows of the picture are called.
ROWS = {
    "adamw 1000 x 1000": "AdamW, 1,000 tensors of 1,000 float32",
    "torch.optim adamw 8-bit moments 1 x 10M": "AdamW with 8-bit moments, 10 M parameters",
    "a user's rule 1 x 50M": "your own update rule, 50 M parameters",
    "recorded: network 2-16-1": "gradient of a small network, recorded",
    "recorded: pendulum of 300 steps": "gradient of a 300-step simulation, recorded",
    "host step bfloat16 GPT-2 small": "AdamW for bfloat16 in host memory, GPT-2 small",
}
PEERS = {
    "jax, jit": "jax.jit",
    "the rule in torch, foreach": "the rule in PyTorch, foreach",
    "torch fused": "PyTorch, fused",
}
PEERS |= {"torch fused, and casts": "PyTorch, fused, and casts"}
BAR = {"height": 22, "gap": 16}


def records() -> list[dict[str, Any]]:
    """The last record of each row; all are of one machine and one day."""
    last = {record["row"]: record for record in map(json.loads, RECORDS.read_text().splitlines())}
    found = [last[row] for row in ROWS]
    machines = {(each["processor"], each["threads"], each["date"]) for each in found}
    if len(machines) > 1:
        raise ValueError(f"the rows are of several machines or days: {machines}: expected one run of make track")
    return found


def times(ratio: float) -> str:
    """A ratio in words."""
    return f"{ratio:.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x"


def figures() -> list[tuple[str, str, float]]:
    """What was timed, beside whom, and how many times as fast we were."""
    return [
        (ROWS[each["row"]], PEERS.get(each["peer"]["name"], each["peer"]["name"]), each["peer"]["ratio"])
        for each in records()
    ]


def machine() -> str:
    """The machine and the day."""
    first = records()[0]
    name = re.sub(r"\(R\)|\(TM\)| Processor", "", first["processor"])
    return f"{name}, {first['threads']} threads, {first['date']}"


def gpu() -> str:
    """The sentence on a GPU, from the table of the page on performance."""
    text = (ROOT / "docs" / "design" / "performance.md").read_text()
    device = re.search(r"on an (NVIDIA \w+)", text)
    copy = re.search(r"`gpu adamw 1 x 1B`, float32 \| [^|]*?, ([\d.]+) \(", text)
    alike = re.search(r"`gpu adamw bfloat16 7B`, moments of bfloat16[^|]*\|[^|]*\| ([\d.]+) \(", text)
    if not (device and copy and alike):
        raise ValueError("docs/design/performance.md lacks the rows of a GPU")
    share = round(100 * float(copy[1]))
    return (
        f"On an {device[1]}, AdamW in float32 reaches {share} % of memory-copy speed. With parameters and moments in"
        f" bfloat16, AdamW is {alike[1]} times as fast as PyTorch's fused AdamW."
    )


def block(folder: str) -> str:
    """The text between the marks of a page."""
    said = "; ".join(f"{what}: {times(ratio)} {peer}" for what, peer, ratio in figures())
    return f"![Speed relative to other libraries. {said}.]({folder}figures.svg)\n\nMedians on {machine()}. {gpu()}"


def picture() -> str:
    """The bars, narrow, so that a phone shows their texts at a readable size."""
    found = figures()
    largest = max(ratio for _, _, ratio in found)
    height, row = 36, BAR["height"] + BAR["gap"] + 12
    total = height + row * len(found)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 460 {total}" width="460" height="{total}" role="img" font-family="system-ui, sans-serif">',
        f'<title>Speed relative to other libraries</title><rect width="460" height="{total}" fill="#ffffff" rx="6"/>',
        '<text x="12" y="24" font-size="15" font-weight="600" fill="#1f2430">Speed relative to other libraries (1x is equal)</text>',
    ]
    for at, (what, peer, ratio) in enumerate(found):
        top = height + at * row
        width = max(6.0, 200 * ratio / largest)
        ours = f'<tspan font-weight="600" fill="#1f2430">{times(ratio)}</tspan>'
        lines += [
            f'<text x="12" y="{top + 14}" font-size="14" fill="#1f2430">{html.escape(what)}</text>',
            f'<rect x="12" y="{top + 20}" width="{width:.0f}" height="{BAR["height"]}" rx="3" fill="#b7410e"/>',
            f'<text x="{width + 18:.0f}" y="{top + 36}" font-size="14" fill="#4a5163">{ours} {html.escape(peer)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def print_figures() -> None:
    """Writes the picture and the pages."""
    PICTURE.write_text(picture())
    for page, folder in PAGES.items():
        page.print(f"{block(folder)}\n")
