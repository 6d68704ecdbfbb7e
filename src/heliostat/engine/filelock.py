"""A lock on a file that the system itself lets go when its process ends, however it ends."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt

    # Beyond any text in the file: on Windows a locked byte cannot be read by others.
    _FAR = 1 << 30

    def try_lock(fd: int) -> bool:
        """Take it at once, or say no."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def lock(fd: int) -> None:
        """Take it, waiting for others; only for what others hold for an instant."""
        while not try_lock(fd):
            pass

    def unlock(fd: int) -> None:
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(fd: int) -> bool:
        """Take it at once, or say no."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(fd: int) -> None:
        """Take it, waiting for others; only for what others hold for an instant."""
        fcntl.flock(fd, fcntl.LOCK_EX)

    def unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)
