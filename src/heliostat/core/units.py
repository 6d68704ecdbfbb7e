"""Numbers, sizes, times and money as people write them, read strictly and written back exactly."""

from __future__ import annotations

import re

SIZES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
TIMES = {"s": 1, "min": 60, "h": 3600, "d": 86400}

_UNIT_OF_SIZE = {unit.lower(): unit for unit in SIZES}
_UNIT_OF_TIME = {
    "s": "s", "sec": "s", "second": "s", "seconds": "s",
    "min": "min", "mins": "min", "minute": "min", "minutes": "min",
    "h": "h", "hour": "h", "hours": "h",
    "d": "d", "day": "d", "days": "d",
}  # fmt: skip

NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
# The same patterns stand in the JSON Schema, so that an editor refuses what the decoder refuses.
SIZE = rf"{NUMBER} *(?:[kKmMgGtT][iI]?)?[bB]"
TIME = rf"{NUMBER} *(?:{'|'.join(sorted(_UNIT_OF_TIME, key=len, reverse=True))})"
MONEY = rf"{NUMBER} *USD"
RANGE = r"(?:0|[1-9][0-9]*)\.\.(?:0|[1-9][0-9]*)"


class Malformed(ValueError):
    """What was written cannot be this; `hint` is what was probably meant."""

    def __init__(self, text: str = "", hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


def number(text: str) -> float:
    """Read a plain decimal number, and none of YAML's others.

    >>> number("2.50")
    2.5
    """
    if re.fullmatch(NUMBER, text):
        return float(text)
    raise Malformed(hint=_plainer(text))


def whole(text: str) -> int:
    """Read a whole number.

    >>> whole("12")
    12
    """
    if re.fullmatch("0|[1-9][0-9]*", text):
        return int(text)
    raise Malformed(hint=_plainer(text) if not re.fullmatch(NUMBER, text) else "")


def size(text: str) -> int:
    """Read bytes with their unit.

    >>> size("16 GB"), size("1 KiB")
    (16000000000, 1024)
    """
    if not re.fullmatch(SIZE, text):
        raise Malformed(hint=_sized(text))
    amount, unit = _split(text)
    return exactly(amount, SIZES[_UNIT_OF_SIZE[unit.lower()]])


def time(text: str) -> float:
    """Read seconds, minutes, hours or days.

    >>> time("30 min"), time("1.5 h")
    (1800.0, 5400.0)
    """
    if not re.fullmatch(TIME, text):
        raise Malformed(hint=_timed(text))
    amount, unit = _split(text)
    return float(amount) * TIMES[_UNIT_OF_TIME[unit]]


def money(text: str) -> float:
    """Read an amount of US dollars.

    >>> money("20 USD")
    20.0
    """
    if not re.fullmatch(MONEY, text):
        found = re.search(NUMBER, text)
        raise Malformed(hint=f"{found[0]} USD" if found else "")
    return float(_split(text)[0])


def span(text: str) -> tuple[int, int]:
    """Read a number of nodes, or a range of them.

    >>> span("3"), span("0..4")
    ((3, 3), (0, 4))
    """
    low, dots, high = text.partition("..")
    if dots and re.fullmatch(RANGE, text):
        return int(low), int(high)
    if not dots:
        try:
            return whole(text), whole(text)
        except Malformed as wrong:
            both = re.fullmatch(r"(\d+) *(?:-|–|:|to|,) *(\d+)", text)
            raise Malformed(hint=f"{both[1]}..{both[2]}" if both else wrong.hint) from None
    ends = re.findall(r"\d+", text)
    raise Malformed(hint=f"{int(ends[0])}..{int(ends[1])}" if len(ends) == 2 else "")


def say_number(value: float) -> str:
    """Write a number the way it is read: decimal, without an exponent.

    >>> say_number(8.0), say_number(0.25)
    ('8', '0.25')
    """
    if value == int(value):
        return str(int(value))
    plain = repr(float(value))
    if "e" not in plain:
        return plain
    from decimal import Decimal

    return format(Decimal(plain), "f")


def say_size(value: int) -> str:
    """Write bytes in the largest unit that divides them.

    >>> say_size(16 * 10**9), say_size(2**30)
    ('16 GB', '1 GiB')
    """
    fits = [(count, unit) for unit, count in SIZES.items() if value % count == 0]
    count, unit = max(fits) if value else (1, "B")
    return f"{value // count} {unit}"


def say_time(value: float) -> str:
    """Write seconds in the largest unit that divides them.

    >>> say_time(1800.0), say_time(90.5)
    ('30 min', '90.5 s')
    """
    fits = [(count, unit) for unit, count in TIMES.items() if value % count == 0]
    count, unit = max(fits) if value and fits else (1, "s")
    return f"{say_number(value / count)} {unit}"


def say_money(value: float) -> str:
    """Write an amount of US dollars.

    >>> say_money(20.0)
    '20 USD'
    """
    return f"{say_number(value)} USD"


def exactly(amount: str, factor: int) -> int:
    """Multiply a written decimal by a whole number without a float in between.

    >>> exactly("1.5", 2**30)
    1610612736
    """
    digits, _, fraction = amount.partition(".")
    parts: int = 10 ** len(fraction)
    return int(digits + fraction) * factor // parts


def _split(text: str) -> tuple[str, str]:
    found = re.match(NUMBER, text)
    amount = found[0] if found else ""
    return amount, text[len(amount) :].strip()


def _plainer(text: str) -> str:
    """What a person meant by one of YAML's or a program's own ways to write a number."""
    bare = text.replace("_", "").replace(" ", "")
    bare = bare.lstrip("0") if re.fullmatch(r"0+[1-9][0-9]*", bare) else bare
    if re.fullmatch(r"[+]?" + NUMBER, bare) or re.fullmatch(r"\d{1,3}(,\d{3})+", bare):
        return bare.strip("+").replace(",", "")
    if re.fullmatch(r"\.\d+", bare):
        return "0" + bare
    if re.fullmatch(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)", bare):
        return str(int(bare[2:], {"x": 16, "o": 8, "b": 2}[bare[1].lower()]))
    if re.fullmatch(NUMBER + r"[eE][+]?\d{1,2}", bare):
        return say_number(float(bare))
    return ""


def _sized(text: str) -> str:
    found = re.fullmatch(rf"({NUMBER}) *([kKmMgGtT]?)([iI]?)[a-zA-Z]*", text)
    if not found:
        return ""
    amount, letter, binary = found.groups()
    if not letter:
        return f"{amount} GB" if text == amount else ""
    return f"{amount} {_UNIT_OF_SIZE[f'{letter}{binary}b'.lower()]}"


def _timed(text: str) -> str:
    clock = re.fullmatch(r"(\d+):(\d{2})(?::\d{2})?", text)
    if clock:
        return f"{int(clock[1]) * 60 + int(clock[2])} min"
    found = re.fullmatch(rf"({NUMBER}) *([a-zA-Z]*)", text)
    if not found:
        return ""
    amount, unit = found[1], found[2].lower()
    meant = next((known for known in ("d", "h", "min", "s") if unit and known.startswith(unit[0])), "min")
    return f"{amount} {meant}"
