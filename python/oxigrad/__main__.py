"""Commands: ``python -m oxigrad doctor``, and ``python -m oxigrad --version``."""

import argparse
import sys

from oxigrad import __version__, doctor


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m oxigrad", description="Commands of oxigrad.")
    parser.add_argument("--version", action="version", version=f"oxigrad {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    examine = commands.add_parser(
        "doctor",
        help="state what was found on this machine, and run a self-test",
        description=doctor.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    examine.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    return doctor.main(as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
