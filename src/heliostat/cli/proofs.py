"""How `down` and `clean` end: their proofs, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heliostat.core.errors import LeftBehind

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.core.proof import Proof


def show(session: Session, verb: str, proofs: Sequence[Proof]) -> int:
    """Exit code 3 when anything is left."""
    from heliostat.cli.render.tables import proof_lines

    code = 0 if all(proof.gone for proof in proofs) else LeftBehind.code
    lines = [line for proof in proofs for line in proof_lines(proof)]
    if not proofs:
        lines = ["nothing was left behind"]
    return session.show(lines, {"verb": verb, "proofs": proofs}, code)
