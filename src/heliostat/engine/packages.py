"""What pip shall install for one job: a requirements file's lines, or what the script itself says."""

from __future__ import annotations

from pathlib import Path

from heliostat.core.errors import UsageError
from heliostat.core.submission import inline_packages, requirement_lines, without

NESTED = ("-r", "--requirement", "--requirements")
NOT_HERE = ("-e", "--editable", "-c", "--constraint")  # Ray hands pip a list, beside which no file lies


def from_file(name: str) -> tuple[str, ...]:
    """The packages of a requirements file and of those that it names."""
    return without(tuple(_lines(Path(name).expanduser(), ())), "ray")


def _lines(path: Path, above: tuple[Path, ...]) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", why=str(error)) from error
    if path.resolve() in above:
        raise UsageError(f"{path} names itself", why="through the files that it takes in")
    found: list[str] = []
    for line in requirement_lines(text):
        word, _, rest = line.replace("=", " ", 1).partition(" ") if line[:2] == "--" else line.partition(" ")
        if word in NOT_HERE:
            raise UsageError(
                f"{path}: `{line}` cannot be used for one job",
                why="only names of packages, addresses and pip's own options travel",
                fix="name the packages themselves, or use `setup` in the file",
            )
        found += _lines(path.parent / rest.strip(), (*above, path.resolve())) if word in NESTED else [line]
    return found


def from_script(path: Path) -> tuple[str, ...]:
    """What the script's own header (PEP 723) names."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ()  # sending the folder tells it better
    return without(inline_packages(text), "ray")
