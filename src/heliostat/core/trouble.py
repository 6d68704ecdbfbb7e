"""An operating system's refusal, in words that say what to do."""

from __future__ import annotations

import errno

from heliostat.core.errors import Conflict, Denied, HelioError, NoCapacity


def trouble(error: OSError, what: str, *, instead: str = "", wanted: str = "writable") -> HelioError:
    """Turn it into one of our errors; `instead` is what helps when that place cannot be used at all.

    >>> trouble(PermissionError(13, "Permission denied", "/x"), "cannot write").why
    'Permission denied (/x)'
    >>> trouble(PermissionError(13, "Permission denied", b"/x"), "cannot read", wanted="readable").fix
    'make it readable for you'
    """
    name = error.filename
    name = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    place = f" ({name})" if name else ""
    why = f"{error.strerror or type(error).__name__}{place}"
    other = f", or {instead}" if instead else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoCapacity(
            what, why=f"the disk is full{place}", fix="free some space there, then run this again"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Denied(what, why=why, fix=f"make it {wanted} for you{other}")
    return Conflict(what, why=why, fix=f"move what stands in the way{other}")
