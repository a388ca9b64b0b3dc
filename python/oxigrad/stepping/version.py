"""Version counters, which tell a resolved step that the settings that it was resolved from have changed."""

import itertools
import os

_NUMBERS = itertools.count(1)


class Version:
    """The version of an optimizer's settings, which each change raises.

    ``number`` changes whenever anything does; ``structure`` only with changes that require a new plan: of options,
    groups of hyperparameters, and assigned slots. No two changes in a process have the same number, whichever threads
    make them.

    >>> version = Version()
    >>> before = version.number
    >>> version.raise_number()
    >>> version.number > before, version.structure < version.number
    (True, True)
    """

    number: int
    structure: int

    __slots__ = ("number", "structure")

    def __init__(self) -> None:
        self.number = self.structure = next(_NUMBERS)

    def raise_number(self) -> None:
        """Marks a change that keeps the plan valid, such as that of a hyperparameter."""
        self.number = next(_NUMBERS)

    def raise_structure(self) -> None:
        """Marks a change that requires a new plan."""
        self.structure = next(_NUMBERS)
        self.number = next(_NUMBERS)


#: The version of the process, which a fork raises: the core may have been in the middle of another thread's step.
PROCESS = Version()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.raise_structure)
