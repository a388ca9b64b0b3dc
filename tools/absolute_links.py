"""Makes the relative links of README.md absolute, for pages that show it by itself, as PyPI's do: called in the checkout that a release is built from.

python tools/absolute_links.py https://github.com/owner/name COMMIT
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!\w+:|#)([^)]+)\)")


def absolute(text: str, repository: str, commit: str) -> str:
    """The text with links to files of a repository at a commit; pictures are linked as they are shown."""
    return _LINK.sub(
        lambda link: f"{link[1]}{link[2]}({repository}/{'raw' if link[1] else 'blob'}/{commit}/{link[3]})", text
    )


if __name__ == "__main__":
    README.write_text(absolute(README.read_text(), *sys.argv[1:]))
