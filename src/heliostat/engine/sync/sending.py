"""What a node lacks, on its way there: asked for once, sent in portions, resumed where it was cut."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from heliostat.core.resource import Ref
from heliostat.core.tree import contents
from heliostat.engine.ports import Shell
from heliostat.engine.sync.call import order
from heliostat.engine.sync.feed import ChangedMeanwhileError, ahead, pieces, portions

INLINE = 256 * 1024  # bytes of contents that go with an order
Report = Callable[[int], None]  # bytes that arrived


@dataclass(slots=True)
class Line:
    """One node within reach, for one sending."""

    shell: Shell
    ref: Ref
    session: str  # names what was sent for it; two sendings never share one
    report: Report
    moved_files: int = 0
    moved_bytes: int = 0

    async def deliver(self, root: bytes, tree: Mapping[bytes, bytes], *, empty: bool = False) -> None:
        """Send every content of the tree that the node does not have."""
        wanted = contents(tree)
        starts = dict.fromkeys(wanted, 0) if empty else await self._lacking(wanted)
        source = portions(root, pieces(tree, starts))
        async with aclosing(ahead(source)) as coming:
            async for data, ended in coming:
                answer = await order(self.shell, self.ref, "put", {"session": self.session}, data)
                self.refuse_wrong(tree, answer)
                self.moved_files += ended
                self.moved_bytes += len(data)
                self.report(len(data))

    def little(self, root: bytes, tree: Mapping[bytes, bytes]) -> bytes | None:
        """All contents of the tree at once, to go with an order, where that is little."""
        wanted = contents(tree)
        if sum(wanted.values()) > INLINE:
            return None
        data = b"".join(part for part, _ in portions(root, pieces(tree, dict.fromkeys(wanted, 0))))
        self.moved_files += len(wanted)
        self.moved_bytes += len(data)
        self.report(len(data))
        return data

    def refuse_wrong(self, tree: Mapping[bytes, bytes], answer: Mapping[str, Any]) -> None:
        """A file whose beginning was sent before it changed."""
        if wrong := answer.get("wrong"):
            raise ChangedMeanwhileError(path_of(tree, wrong[0].encode()))

    async def _lacking(self, wanted: Mapping[bytes, int]) -> dict[bytes, int]:
        """The digests that are not there, each with how much of it is."""
        if not wanted:
            return {}
        listed = zlib.compress(b"\n".join(b"%s %d" % each for each in wanted.items()), 1)
        answer = await order(self.shell, self.ref, "want", {}, listed)
        parts = answer["parts"]
        return {
            digest: parts.get(digest.decode(), 0)
            for digest, there in zip(wanted, answer["have"], strict=True)
            if there == "0"
        }


def path_of(tree: Mapping[bytes, bytes], digest: bytes) -> bytes:
    """A file with that content."""
    return next((path for path, value in tree.items() if value.endswith(digest)), b"")
