"""Steps by texts that are compiled with sanitizers of addresses and of undefined behaviour; a test runs this program."""

import sys
from pathlib import Path

for folder in ("", "../emulators", "../tables"):
    sys.path.insert(0, str(Path(__file__).parent.joinpath(folder).resolve()))

from product import LENGTHS, pairs, take  # noqa: E402 - after the folders of these modules are found
from steps import compiled  # noqa: E402

FLAGS = ("-O0", "-g1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
# Rules without sums, with sums of elements and totals, with slots of one number, and with random numbers.
RULES = ("adamw-amsgrad", "lamb", "schedule-free-sgd", "adam-lrd", "prodigy", "rprop-late")


def main() -> None:
    """Takes steps of some rules with every option, and with every dtype."""
    cases = [combination for combination in pairs() if combination.rule in RULES]
    texts = {case: case.texts(LENGTHS, 2) for case in cases}
    libraries = compiled([text for own in texts.values() for text in own], *FLAGS)
    checked = sum(take(case, libraries.__getitem__, LENGTHS, 2) for case in cases)
    sys.stdout.write(f"{checked} arrays of steps had the bits of the host\n")


if __name__ == "__main__":
    main()
