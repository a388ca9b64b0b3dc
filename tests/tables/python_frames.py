"""The Python functions that a call runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def frames(f: Callable[[], Any]) -> list[str]:
    """The modules and names of the Python functions that a call runs."""
    found: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            found.append(f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        f()
    finally:
        sys.setprofile(before)
    return [name for name in found if not name.endswith(".<lambda>") or name.startswith("oxigrad")]
