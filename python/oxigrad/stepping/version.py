"""Version counters, which tell a resolved step that the settings that it was resolved from have changed."""

import itertools

_NUMBERS = itertools.count(1)


class Version:
    """The version of an optimizer's settings, which each change raises.

    ``number`` changes whenever anything does; ``structure`` only where a plan has to be made anew: with options, groups of
    hyperparameters, and slots that are assigned. No two changes in a process have the same number, whichever threads make them.

    >>> version = Version()
    >>> before = version.number
    >>> version.raise_number()
    >>> version.number > before, version.structure < version.number
    (True, True)
    """

    __slots__ = ("number", "structure")

    def __init__(self) -> None:
        self.number = self.structure = next(_NUMBERS)

    def raise_number(self) -> None:
        """Marks a change after which the plan still holds, as that of a hyperparameter."""
        self.number = next(_NUMBERS)

    def raise_structure(self) -> None:
        """Marks a change after which the plan has to be made anew."""
        self.structure = next(_NUMBERS)
        self.number = next(_NUMBERS)
