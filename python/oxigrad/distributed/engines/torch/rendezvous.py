"""The rendezvous of a job: a store of torch, by which survivors and processes that join form the next generation.

Keys begin with the identity of the job. ``g`` is the number of a generation. ``uid`` is the name of a process: its
rank at the start, or "j" and its ticket.

=================== =================================================================================================
key                 value
=================== =================================================================================================
``job``             without the identity: the last job of the store, the version of the package, and whether processes
                    can join
``ended``           why no process can join any more
``tickets``         the number of processes that have asked to join
``ticket/uid``      while the process waits: a number that it keeps changing, and its proof; "" afterwards
``refused/uid``     why a waiting process is not admitted
``admitted/uid``    the first generation of the process
``g/ready/uid``     set while this member of generation ``g`` waits for the next one
``g/left``          the number of members that have left
``g/next``          the members of generation ``g + 1``, by rank; the first writer decides
``g/come/uid``      whether this member is about to connect to the others of generation ``g``
``g/connected/uid`` whether it has connected to them
``g/come``,         the reports of the members on this; the first writer decides
``g/connected``
=================== =================================================================================================
"""

import json
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.torch.admission import TOKEN, has_token, parsed, proof, token_of_environment
from oxigrad.distributed.engines.torch.library import Group, client_of, failures_of_store
from oxigrad.distributed.errors import CommunicationError, Excluded, Refused, TimedOut, WorkerLost, log
from oxigrad.distributed.messages.agreement import check_version

_BEAT = 0.1
"""Seconds between two signs of life of a process that waits."""
_PATIENCE = 2.0
"""Seconds that processes have at least to connect."""
_ENDED = "the workers of the job have ended, or have left"


class Rendezvous:
    """The part of one process in the generations of a job.

    Args:
        store: a connection to the store that all processes reach.
        job: the identity of the job.
        uid, members: the name of this process, and those of all members of its generation by rank.
        generation: that of the members.
        token: that of a job which accepts newcomers; None where nobody can join.
    """

    uid: str
    members: list[str]
    generation: int

    def __init__(
        self, store: Any, job: bytes, uid: str, members: list[str], generation: int = 0, token: bytes | None = None
    ) -> None:
        self._store, self._token = store, token
        self.job: bytes = job
        self.uid, self.members, self.generation = uid, members, generation
        #: The communicator of the present generation.
        self.communicator: Any = None
        #: Whether it did not answer in time, so that waits which have begun end.
        self.is_given_up: bool = False
        #: The process that has it: one that it forks has none.
        self.process: int = os.getpid()
        #: The first ticket whose process may wait.
        self._first = 1
        self._refused: set[str] = set()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        return f"oxigrad/{self.job.hex()}/{name}"

    def _read(self, name: str) -> str | None:
        """The value of a key; None where there is none."""
        value = _read(self._store, self._key(name))
        if self.is_given_up:
            raise CommunicationError("the rendezvous is given up")  # in a thread that nobody waits for
        return value

    def _write(self, name: str, value: Any) -> None:
        self._store.set(self._key(name), str(value))

    def _decide(self, name: str, value: Any, form: Any) -> Any:
        """The value of a key that is written once: this one, unless another process was faster.

        Raises `Refused` for one of another form.
        """
        text = self._store.compare_set(self._key(name), "", json.dumps(value)).decode(errors="replace")
        return parsed(name, text, form)

    def publish(self, version: str) -> None:
        """Tells processes that would join of this job; one member calls it."""
        job = {"job": self.job.hex(), "version": version, "accepts": self.accepts_newcomers}
        self._store.set("oxigrad/job", json.dumps(job))

    @property
    def accepts_newcomers(self) -> bool:
        """Whether processes can join."""
        return self._token is not None

    # --- processes that join ------------------------------------------------------------------------------------------

    @classmethod
    def of_newcomer(cls, host: str, port: int, version: str, seconds: float) -> tuple["Rendezvous", Group]:
        """The rendezvous of a job that this process joins, and its group.

        Waits until the workers admit it, by their `reform`.

        Raises `CommunicationError` where the process that has the store has ended, or the workers have; `Refused` where
        they run another version of the package, accept no newcomers or have another token; and `TimedOut`.
        """
        token = token_of_environment("join=True")
        where, end = f"{host}:{port}", Backoff(seconds, longest=_BEAT)
        gone = (
            f"no job can be joined at {where}: the process that began it has ended, or MASTER_ADDR and MASTER_PORT "
            "are of another one"
        )
        with failures_of_store(CommunicationError, gone):
            store = client_of(host, port, seconds)
            if not end.until(lambda: store.check(["oxigrad/job"])):
                raise TimedOut(f"no job began at {where} within {seconds:g} s whose workers have the engine 'torch'")
            text = _read(store, "oxigrad/job") or ""
            job = parsed("oxigrad/job", text, {"job": str, "version": str, "accepts": bool})
            check_version("a worker", version, "the job", job["version"])
            if not job["accepts"]:
                raise Refused(
                    "newcomers",
                    f"the job at {where} accepts no newcomers: expected accept_newcomers=True on its workers",
                )
            rendezvous = cls(store, _identity(job["job"]), "", [], token=token)
            return rendezvous, rendezvous.join(where, end, seconds)

    def join(self, where: str, end: Backoff, seconds: float) -> Group:
        """Asks the workers to admit this process, and waits for it; returns its group. See `of_newcomer`."""
        self._tickets()  # the store ends the connection of a process that adds to what is no number
        self.uid = f"j{self._store.add(self._key('tickets'), 1)}"
        self._wait_for_admission(where, end, seconds)
        return self.connect(self._decide(f"{self.generation}/next", [], [str]), seconds)

    def _wait_for_admission(self, where: str, end: Backoff, seconds: float) -> None:
        """Waits until this process belongs to a generation, and sets the one before as its own."""
        beat, shown = 0, proof(self._token or b"", self.job, self.uid)
        while (generation := self._read(f"admitted/{self.uid}")) is None:
            reason, refusal = self._read("ended"), self._read(f"refused/{self.uid}")
            if reason is None and refusal is None and not end.is_over():
                beat += 1
                self._write(f"ticket/{self.uid}", json.dumps({"beat": beat, "proof": shown}))
                time.sleep(_BEAT)
                continue
            self._write(f"ticket/{self.uid}", "")
            if refusal is not None:
                raise Refused("token", f"the job at {where} refuses this process: {refusal}")
            if reason is not None:
                raise CommunicationError(f"the job at {where} can no longer be joined: {reason}")
            raise TimedOut(
                f"the workers of the job at {where} have not admitted this one within {seconds:g} s: they have died "
                "or hang"
            )
        self._write(f"ticket/{self.uid}", "")
        self.generation = parsed(f"admitted/{self.uid}", generation, int) - 1

    def newcomers(self) -> list[str]:
        """The processes that wait to join, live and have the token, in the order in which they came.

        None where the job accepts none.
        """
        if self._token is None:
            return []
        try:
            count = self._tickets()
        except Refused as error:
            self._warn_once("tickets", str(error))
            return []
        while self._first <= count and self._read(f"ticket/j{self._first}") == "":
            self._first += 1
        before = self._waiting(range(self._first, count + 1))
        if not before:
            return []
        time.sleep(3 * _BEAT)
        after = self._waiting(range(self._first, count + 1))
        return [uid for uid, beat in before.items() if after.get(uid, beat) != beat]

    def _tickets(self) -> int:
        """The number of processes that have asked to join. Raises `Refused` for what is no number."""
        text = self._read("tickets")
        return 0 if text is None else parsed("tickets", text, int)

    def _warn_once(self, name: str, why: str) -> bool:
        """Logs why a process that asks to join is refused, the first time that ``name`` is.

        Whether it is the first time.
        """
        is_new = name not in self._refused
        self._refused.add(name)
        if is_new:
            log.warning("a process that asks to join is refused: %s", why)
        return is_new

    def _waiting(self, tickets: Iterable[int]) -> dict[str, str]:
        beats = {uid: self._read(f"ticket/{uid}") for uid in (f"j{ticket}" for ticket in tickets)}
        waiting = {uid: beat for uid, beat in beats.items() if beat and self._read(f"admitted/{uid}") is None}
        return {uid: beat for uid, beat in waiting.items() if self._is_entitled(uid, beat)}

    def _is_entitled(self, uid: str, ticket: str) -> bool:
        """Whether a process has shown the token with its ticket; one that has not is told, and logged once."""
        try:
            shown = parsed(f"ticket/{uid}", ticket, {"beat": int, "proof": str})["proof"]
            if has_token(self._token or b"", self.job, uid, shown):
                return True
            why = f"it has another token: expected {TOKEN} as of the workers"
        except Refused as error:
            why = str(error)
        if self._warn_once(uid, why):
            self._write(f"refused/{uid}", why)
        return False

    def leave(self, lost: int) -> None:
        """Notes that this member has left; after the last one, but for the lost ones, no process can join."""
        if self._store.add(self._key(f"{self.generation}/left"), 1) + lost >= len(self.members):
            self.end(_ENDED)

    def end(self, reason: str) -> None:
        """Tells processes that ask to join that the job has ended."""
        self._write("ended", reason)

    # --- the next generation ------------------------------------------------------------------------------------------

    def decided(self, alive: Callable[[], Iterable[int]], seconds: float) -> list[str]:
        """The members of the next generation by rank: the first survivor decides, when all of them wait for it.

        ``alive()`` are the ranks that live. Raises `Excluded` where this process is not a member, and `TimedOut` where
        a survivor does not come; it may be called again then.
        """
        generation, end = self.generation, Backoff(seconds, longest=0.01)
        self._write(f"{generation}/ready/{self.uid}", 1)
        while True:
            survivors = [self.members[rank] for rank in sorted(alive())]
            missing = [uid for uid in survivors if self._read(f"{generation}/ready/{uid}") is None]
            if self._read(f"{generation}/next") is not None or (not missing and survivors[0] == self.uid):
                following = self._admit(survivors)
                if self.uid not in following:
                    raise Excluded(self.members.index(self.uid), generation)
                return following
            if end.is_over():
                self._store.delete_key(self._key(f"{generation}/ready/{self.uid}"))
                ranks = [self.members.index(uid) for uid in missing]
                raise TimedOut(f"reform: workers that are alive do not call it: {ranks or 'the first of them'}")
            end.pause()

    def _admit(self, survivors: list[str]) -> list[str]:
        """The members of the next generation: survivors and waiting processes, unless another process has decided."""
        name = f"{self.generation}/next"
        newcomers = [] if self._read(name) is not None else self.newcomers()
        following = self._decide(name, [*survivors, *newcomers], [str])
        for uid in set(newcomers) & set(following):
            log.info("a process joins as rank %d of generation %d", following.index(uid), self.generation + 1)
            self._write(f"admitted/{uid}", self.generation + 1)
        return following

    def excludes_this(self, generation: int) -> bool:
        """Whether the others have formed the generation after this one without this process."""
        following = self._read(f"{generation}/next")
        return following is not None and self.uid not in parsed(f"{generation}/next", following, [str])

    def connect(self, members: list[str], seconds: float) -> Group:
        """Enters the next generation, of these members: its group.

        Members that do not connect are left out, and the others connect again. Raises `TimedOut` where living members
        cannot connect.
        """
        limit, before = patience_of(seconds), set(self.members)
        while True:
            self.generation, self.members = self.generation + 1, members
            group = self._connected(limit)
            # The others may have waited for longer than the first, as long as they have patience.
            patience = (2 if members[0] == self.uid else 3) * limit
            reports = self._agreed("connected", group is not None, patience)
            if group is not None:
                if all(reports.get(uid) for uid in members):
                    return group
                group.close()
            present = [uid for uid in members if uid in reports]
            # Where all live, and some cannot be reached, those that are new are left out.
            members = present if len(present) < len(members) else [uid for uid in members if uid in before]
            if members == self.members:
                raise TimedOut(f"the workers cannot connect to each other within {limit:g} s")
            if self.uid not in members:
                raise WorkerLost((), "joining", "the workers cannot connect to this process")

    def _connected(self, patience: float) -> Group | None:
        """The group of the generation; None where it cannot be made.

        Processes connect once all have come: they begin, or give up, soon after each other.
        """
        if len(self._agreed("come", True, patience)) < len(self.members):
            return None
        place = self.members.index(self.uid), len(self.members)
        try:
            return Group.connected(self._store, self._key(f"{self.generation}/group"), *place, patience)
        except RuntimeError:
            return None

    def _agreed(self, name: str, report: bool, seconds: float) -> dict[str, bool]:
        """The reports of the members that report in time, the same for all."""
        name, end = f"{self.generation}/{name}", Backoff(seconds, longest=0.01)
        self._write(f"{name}/{self.uid}", json.dumps(report))
        reports: dict[str, bool] = {}

        def have_reported() -> bool:
            for uid in set(self.members) - reports.keys():
                if (text := self._read(f"{name}/{uid}")) is not None:
                    reports[uid] = parsed(f"{name}/{uid}", text, bool)
            return len(reports) == len(self.members)

        end.until(lambda: self._read(name) is not None or have_reported())
        return self._decide(name, reports, {str: bool})


def patience_of(seconds: float) -> float:
    """The seconds for which a process waits for the others to connect, if a generation may take ``seconds``."""
    return max(seconds / 4, _PATIENCE)


def _identity(text: str) -> bytes:
    """The identity of a job. Raises `Refused` for a text that is not one."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise Refused(
            "rendezvous", f"the job of the rendezvous is {text[:40]!r}: expected hexadecimal digits"
        ) from None


def _read(store: Any, key: str) -> str | None:
    return store.get(key).decode(errors="replace") if store.check([key]) else None
