"""Makes the relative links of README.md absolute, as PyPI's page needs them, and sets the addresses in pyproject.toml: for a release.

python tools/absolute_links.py https://github.com/owner/name COMMIT
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, PROJECT = ROOT / "README.md", ROOT / "pyproject.toml"
# The address in pyproject.toml until a release names its own.
PLACEHOLDER = "https://github.com/OWNER/oxigrad"
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!\w+:|#)([^)]+)\)")


def absolute(text: str, repository: str, commit: str) -> str:
    """The text with links to files of a repository at a commit; pictures are linked as they are shown."""
    return _LINK.sub(
        lambda link: f"{link[1]}{link[2]}({repository}/{'raw' if link[1] else 'blob'}/{commit}/{link[3]})", text
    )


def addressed(text: str, repository: str) -> str:
    """The text of pyproject.toml with the addresses of a repository."""
    return text.replace(PLACEHOLDER, repository)


if __name__ == "__main__":
    README.write_text(absolute(README.read_text(), *sys.argv[1:]))
    PROJECT.write_text(addressed(PROJECT.read_text(), sys.argv[1]))
