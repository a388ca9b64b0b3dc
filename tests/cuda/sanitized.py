"""Steps by texts that are compiled with sanitizers of addresses and of undefined behaviour; a test runs this program."""

import sys
from pathlib import Path

for folder in ("", "../tables"):
    sys.path.insert(0, str(Path(__file__).parent.joinpath(folder).resolve()))

from steps import compiled, twin  # noqa: E402 - after the folders of these modules are found
from test_bits import CONFIGURATIONS  # noqa: E402

FLAGS = ("-O0", "-g1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
# A rule without sums, one with sums, one with a slot of one number, and one that draws random numbers.
RULES = ("adamw-amsgrad", "lamb", "schedule-free-sgd", "adam-lrd")


def main() -> None:
    """Takes steps of some rules in each configuration."""
    cases = [(c, RULES[at % len(RULES)]) for at, c in enumerate(CONFIGURATIONS.values())]
    cases += [(c, RULES[(at + 1) % len(RULES)]) for at, c in enumerate(CONFIGURATIONS.values())]
    libraries = compiled([text for c, rule in cases for text in c.texts(rule)], *FLAGS)
    checked = 0
    for configuration, rule in cases:
        opt = configuration.optimizer(rule)
        with twin(opt, libraries.__getitem__, **configuration.options) as found:
            configuration.run(opt)
        checked += found.checked
    sys.stdout.write(f"{checked} arrays of steps had the bits of the host\n")


if __name__ == "__main__":
    main()
