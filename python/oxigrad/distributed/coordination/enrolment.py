"""The part of a wrapper in a training: its identity, and the election of the worker that keeps what all share."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.decisions.training import NO_TRAINING, Numbered, Training, Trainings, exchanging
from oxigrad.distributed.messages.agreement import check_method


class Enrolment(Numbered):
    """The training that a wrapper takes part in; it has no number before `number_now`, or its first `begin`.

    >>> trainings = Trainings()
    >>> first, second = Enrolment(trainings), Enrolment(trainings)
    >>> first.number_now(), second.number_now(), second.begin(), first.begin(), first.begin()
    (None, None, True, True, False)
    >>> first.end(bytes(8)), first.begin()
    (None, True)
    >>> first.training, second.training
    (Training(number=1, session=2), Training(number=2, session=1))
    """

    def __init__(self, trainings: Trainings) -> None:
        super().__init__()
        self._trainings = trainings
        self._sessions = 0
        self._is_open = False
        self._leave: Callable[[], Callable[[], Any] | None] | None = None

    def number_now(self) -> None:
        """Numbers the wrapper, once, by the order in which it is made, or joins where it was copied."""
        self.number: int = self.number or self._trainings.new_number()

    @property
    def training(self) -> Training:
        """The identity of the training; (0, 0) where it is not known yet."""
        return Training(self.number, self._sessions) if self.number else Training()

    def take_number(self, number: int) -> None:
        """Takes the number that the other workers know."""
        self.number = number
        self._trainings.adopt(Training(number))

    def begin(self) -> bool:
        """Whether the worker joins a training that is new to it: the first one, or one after `end`."""
        if self._is_open:
            return False
        self.number_now()
        self._is_open = True
        self._sessions += 1
        return True

    def end(self, digest: bytes) -> None:
        """Leaves the training, whose messages have this digest."""
        self._is_open = False
        self._trainings.left.append(digest)
        if self._trainings.leave is self._leave:
            self._trainings.leave = lambda: None

    def has_left(self, digest: bytes) -> bool:
        """Whether a message is a late answer of a training that this worker has left."""
        return digest in self._trainings.left

    def adopt(self, training: Training) -> None:
        """Takes the identity that the other workers know."""
        self.take_number(training.number)
        self._sessions = training.session

    def end_former(self) -> None:
        """Ends what serves a former training of this worker, as of a wrapper that it has not left."""
        stop, self._trainings.stop = self._trainings.stop, None
        if stop is not None:
            stop()

    def serve(self, stop: Callable[[], None], leave: Callable[[], Any]) -> None:
        """Notes what ends the service of the present training in this process, and the method that leaves it well."""
        self._trainings.stop = stop
        self._leave = self._trainings.leave = weakref.WeakMethod(leave)

    def takes_part(self, leave: Callable[[], Any]) -> None:
        """Notes how a worker that serves nothing tells the others that its work has ended, also without its wrapper."""
        self._leave = self._trainings.leave = lambda: leave

    def elected(self, communicator: Communicator, step: int, seconds: float) -> tuple[int, int]:
        """The rank that keeps shared values, and the number of workers: rank 0, later the rank of the latest step.

        In later generations the workers tell each other their steps and trainings. Those that came after the start take
        the training of the others; those that are in a later one wait for the next time that all tell each other.
        """
        if communicator.generation == 0:
            return 0, communicator.size
        while True:
            with exchanging(NO_TRAINING):  # a worker that joins does not know the training yet
                rows = communicator.all_gather_v(np.array([step, self.training.code]), timeout=seconds)
            check_method([row.size for row in rows], 2)
            reported = [(int(row[0]), Training.of_code(int(row[1]))) for row in rows]
            present = min((training for _, training in reported if training.number), default=Training(1, 1))
            if self.training == Training():
                self.adopt(present)
            if self.training <= present:
                members = {
                    rank: each for rank, (each, training) in enumerate(reported) if training in (present, Training())
                }
                return max(members, key=lambda rank: (members[rank], -rank)), len(members)
