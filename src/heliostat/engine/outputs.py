"""What a run made, brought here, beside the file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from heliostat.core.errors import HelioError
from heliostat.core.event import Level, Note
from heliostat.core.resource import Ref
from heliostat.engine.ports import Site
from heliostat.engine.sync.fetch import fetch
from heliostat.engine.sync.work import OUTPUTS


async def fetch_outputs(site: Site, nodes: Sequence[Ref], run_id: str) -> tuple[tuple[str, ...], str]:
    """Bring back what the run made, into ./outputs/<run>/ beside the file; also after a failure."""
    base = Path(site.spec.folder or ".", OUTPUTS)
    into = base / run_id
    there_already = base.exists()
    try:
        into.mkdir(parents=True, exist_ok=True)
        if not there_already:  # neither git nor the next run's work folder should take them along
            (base / ".gitignore").write_text("*\n", encoding="utf-8")
        fetched = await fetch(site, nodes, run_id, site.spec.outputs, into)
    except (HelioError, OSError) as error:
        # How the job ended is what was asked for: it is told whatever becomes of the files.
        what = error.what if isinstance(error, HelioError) else f"{error.strerror} ({error.filename})"
        text = f"the outputs of {run_id} could not be fetched: {what}"
        site.emit(Note(text=f"{text}; `helio pull {run_id}:` tries again", level=Level.WARN))
        fetched = ()
    if not fetched:
        _unmade(base, into, keep=there_already)
    return fetched, str(into) if fetched else ""


def _unmade(base: Path, into: Path, *, keep: bool) -> None:
    """Nothing came: no empty folder stays."""
    with suppress(OSError):
        into.rmdir()
    if not keep:
        with suppress(OSError):
            (base / ".gitignore").unlink()
        with suppress(OSError):
            base.rmdir()
