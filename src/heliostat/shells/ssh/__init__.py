"""Reach hosts by the system's own OpenSSH: one connection per host, many commands over it."""
