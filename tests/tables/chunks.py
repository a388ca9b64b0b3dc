"""The distribution of tests over processes."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadGroupScheduling

# The number of tests that a process is given together: a message for each of them takes longer than a short test.
SIZE = 16


class ChunkScheduling(LoadGroupScheduling):
    """As ``--dist=loadgroup``, where tests without a group form chunks of neighbours, as if each chunk was a group.

    Chunks that are done are forgotten: after every test, the tests that a process was given and has not run yet are counted.
    """

    _chunks: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._chunks is None:
            groups = {each: super(ChunkScheduling, self)._split_scope(each) for each in self.collection or ()}
            alone = [each for each, group in groups.items() if group == each]
            self._chunks = groups | {each: f"chunk {number // SIZE}" for number, each in enumerate(alone)}
        return self._chunks[nodeid]

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Notes that a process has run a test, and gives it more of them."""
        nodeid = self.registered_collections[node][item_index]
        chunk, work = self._split_scope(nodeid), self.assigned_work[node]
        work[chunk][nodeid] = True
        if all(work[chunk].values()):
            del work[chunk]
        self._reschedule(node)
