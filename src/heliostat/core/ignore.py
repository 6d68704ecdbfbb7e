"""What an ignore file says of a path, by git's rules: the last line that matches decides."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPECIAL = re.compile(rb"\\.|\*\*/|/\*\*$|\*+|\?|\[(?:[!^]?\]?(?:\\.|\[:[a-z]+:\]|[^\]])*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line."""

    keeps: bool  # begins with `!`
    folders: bool  # ends with `/`
    on_path: bool  # has a `/` further inside: looks at the path below its file, else at the name alone
    regex: str


class Rules:
    """The lines of one ignore file.

    >>> rules = Rules(b"*.log\\n!keep.log\\n/build/\\n")
    >>> rules.ignores(b"a/x.log", b"x.log", False), rules.ignores(b"a/keep.log", b"keep.log", False)
    (True, False)
    >>> rules.ignores(b"build", b"build", True), rules.ignores(b"a/build", b"build", True)
    (True, None)
    """

    def __init__(self, text: bytes) -> None:
        self.rules = [rule for line in text.splitlines() if (rule := parse(line)) is not None]
        # Most paths match nothing: one search over all lines says so.
        self._name = _any(rule for rule in self.rules if not rule.on_path)
        self._path = _any(rule for rule in self.rules if rule.on_path)
        self._each = [(rule, re.compile(rule.regex.encode("latin-1"), re.DOTALL)) for rule in self.rules]

    def ignores(self, path: bytes, name: bytes, folder: bool) -> bool | None:
        """Whether it is left out; None: no line speaks of it. `path` is below the ignore file's folder."""
        on_name = self._name is not None and self._name.fullmatch(name)
        if not on_name and not (self._path is not None and self._path.fullmatch(path)):
            return None
        for rule, regex in reversed(self._each):
            if (folder or not rule.folders) and regex.fullmatch(path if rule.on_path else name):
                return not rule.keeps
        return None


def _any(rules: object) -> re.Pattern[bytes] | None:
    parts = [f"(?:{rule.regex})" for rule in rules]  # type: ignore[attr-defined]  # a generator of rules
    return re.compile("|".join(parts).encode("latin-1"), re.DOTALL) if parts else None


def parse(line: bytes) -> Rule | None:
    """Read one line; nothing for a comment, an empty one, or a pattern that cannot be read."""
    line = line.rstrip(b"\r\n")
    while line.endswith(b" ") and not line.endswith(b"\\ "):
        line = line[:-1]
    if not line or line.startswith(b"#"):
        return None
    keeps = line.startswith(b"!")
    line = line[1:] if keeps else line
    folders = line.endswith(b"/")
    line = line[:-1] if folders else line
    on_path = b"/" in line
    line = line.removeprefix(b"/")
    if not line:
        return None
    regex = translate(line)
    try:
        re.compile(regex.encode("latin-1"))
    except re.error:
        return None
    return Rule(keeps, folders, on_path, regex)


def translate(pattern: bytes) -> str:
    """A git pattern as a regular expression over bytes, written as latin-1."""
    out, at = [], 0
    for found in _SPECIAL.finditer(pattern):
        out.append(re.escape(pattern[at : found.start()]).decode("latin-1"))
        out.append(_special(found.group(), pattern, found.start()))
        at = found.end()
    out.append(re.escape(pattern[at:]).decode("latin-1"))
    return "".join(out)


def _special(token: bytes, pattern: bytes, at: int) -> str:
    begins = at == 0 or pattern[at - 1 : at] == b"/"
    if token == b"**/":
        return "(?:[^/]+/)*" if begins else "[^/]*/"
    if token == b"/**":
        return "/.+"
    if token.startswith(b"*"):
        whole = token == b"**" and begins and at + 2 == len(pattern)
        return ".+" if whole else "[^/]*"
    if token == b"?":
        return "[^/]"
    if token.startswith(b"\\"):
        return re.escape(token[1:]).decode("latin-1")
    inside = token[1:-1]
    negated = inside[:1] in (b"!", b"^")
    return _class(inside[1:] if negated else inside, negated)


_NAMED = {
    b"[:alpha:]": b"a-zA-Z", b"[:digit:]": b"0-9", b"[:alnum:]": b"a-zA-Z0-9", b"[:upper:]": b"A-Z",
    b"[:lower:]": b"a-z", b"[:space:]": b" \t\n\r\f\v", b"[:xdigit:]": b"0-9a-fA-F", b"[:blank:]": b" \t",
}  # fmt: skip


def _class(inside: bytes, negated: bool) -> str:
    for name, letters in _NAMED.items():
        inside = inside.replace(name, letters)
    safe = re.sub(rb"(?<!\\)([\[\]^&~|])", rb"\\\1", inside)
    return f"(?!/)[{'^' if negated else ''}{safe.decode('latin-1')}]"
