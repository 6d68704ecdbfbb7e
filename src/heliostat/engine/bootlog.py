"""What a node said while it booted: the first thing to read when it did not."""

from __future__ import annotations

from heliostat.core.errors import Unavailable, UsageError
from heliostat.core.resource import Ref
from heliostat.engine.ports import Ground

MOST = 1_000_000  # bytes: a node that booted a thousand times has more to tell than anybody reads


async def boot_log(ground: Ground, node: Ref, *, most: int = MOST) -> bytes:
    """The end of the log of a node's boots, read where it is kept."""
    path = node.facts.get("log")
    if not path:
        why = "this place does not say where it is kept"
        raise UsageError(f"there is no log of how {node.key} booted", why=why, fix="look at `helio status`")
    async with ground.shell(node) as shell:
        result = await shell.run(["tail", "-c", str(most), path])
    if result.code:
        raise Unavailable(
            f"cannot read how {node.key} booted",
            why=result.err.decode(errors="replace").strip() or f"exit code {result.code}",
            fix="look at `helio status`: the node may be gone",
        )
    return result.out
