"""How many workers, of which groups, with which GPUs: the keys that have short and long forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heliostat.core import units
from heliostat.core.decode.kinds import VARIABLE, Choice, Kind, Number, Plain, Schema, Text, Word
from heliostat.core.decode.log import Bad, Given, Log, Path, dotted
from heliostat.core.decode.shapes import Field, ListOf, Record
from heliostat.core.decode.tree import Scalar, Table, Tree, is_empty
from heliostat.core.resource import HEAD
from heliostat.core.spec import ONE_GROUP, Count, Gpus, Group, Node
from heliostat.core.units import Malformed

PER_GPU = "per-gpu"
MOST = 100_000  # nodes of a group: beyond is a slip of the finger


class Whole(Word[int]):
    """A whole number."""

    word = "a whole number such as 3"

    def parse(self, text: str) -> int:
        return units.whole(text)

    def write(self, value: int) -> Plain:
        return value

    def schema(self) -> Schema:
        text = {"type": "string", "pattern": f"^(?:0|[1-9][0-9]*)$|{VARIABLE}"}
        return {"anyOf": [{"type": "integer", "minimum": 0}, text]}


class Span(Word[Count | None]):
    """`3`, `0..4` or `per-gpu`."""

    word = "a number such as 3, a range such as 0..4, or per-gpu"

    def parse(self, text: str) -> Count | None:
        if text == PER_GPU:
            return None
        try:
            low, high = units.span(text)
        except Malformed as wrong:
            raise Malformed(hint=PER_GPU if "gpu" in text.lower() else wrong.hint) from None
        if low > high:
            raise Malformed(f"goes from {low} down to {high}", f"{high}..{low}")
        if high > MOST:
            raise Malformed(f"asks for {high:,} nodes; {MOST:,} is the limit")
        return Count(low=low, high=high)

    def write(self, value: Count | None) -> Plain:
        if value is None:
            return PER_GPU
        return value.low if value.low == value.high else f"{value.low}..{value.high}"

    def schema(self) -> Schema:
        text = {"type": "string", "pattern": f"^(?:0|[1-9][0-9]*)$|^{units.RANGE}$|{VARIABLE}"}
        return {"anyOf": [{"type": "integer", "minimum": 0}, {"const": PER_GPU}, text]}


AT_LEAST = Field(
    "at_least",
    Whole(),
    "A start with fewer workers is accepted from this number on; without it, all or none.",
    "all of `count`",
    "6",
)


class CountKind(Record[Count | None]):
    """`10`, `2..10`, `per-gpu` or `{count: 10, at_least: 6}`."""

    def __init__(self) -> None:
        fields = (
            Field("count", Span(), "How many.", example="10", needed=True),
            AT_LEAST,
        )
        super().__init__(Count, fields, short=Span(), word=Span.word)

    def build(self, values: dict[str, Any], tree: Table, path: Path, log: Log) -> Count | None:
        del log
        return with_least(values.get("count"), values.get("at_least"), tree, path)

    def write(self, value: Count | None) -> Plain:
        short = Span().write(value)
        if value is None or value.at_least is None:
            return short
        return {"count": short, "at_least": value.at_least}

    def show(self, value: Count | None, tree: Tree) -> str:
        del tree
        least = f", at least {value.at_least}" if value and value.at_least is not None else ""
        return f"{Span().write(value)}{least}"


def with_least(count: Count | None, least: int | None, tree: Tree, path: Path) -> Count | None:
    """Join a count with its `at_least`, which only a fixed number can have."""
    if least is None:
        return count
    name = f"`{dotted((*path, 'at_least'))}`"
    if count is not None and count.high == 0:
        raise Bad(tree.mark, f"{name} needs a `count` beside it")
    if count is None or count.low != count.high:
        raise Bad(tree.mark, f"{name} goes with a fixed count; a range starts with its lower end anyway")
    if not 1 <= least <= count.high:
        raise Bad(tree.mark, f"{name} must be between 1 and the count, {count.high}")
    return Count(low=count.low, high=count.high, at_least=least)


class GpusShort(Word[Gpus]):
    """`1` or `T4`."""

    word = "a number such as 1, a model such as T4, or a mapping"

    def parse(self, text: str) -> Gpus:
        try:
            count = units.number(text)
        except Malformed:
            if text[:1].isalpha() and text.replace("-", "").replace("_", "").replace(" ", "").isalnum():
                return Gpus(count=1, model=text)
            raise
        if count > 64:
            raise Malformed(f"asks for {text} GPUs in one node", f'{{model: "{text}"}}')
        return Gpus(count=count)

    def write(self, value: Gpus) -> Plain:
        return value.model if value.model and value.count == 1 else Number().write(value.count)

    def schema(self) -> Schema:
        text = {"type": "string", "pattern": f"^{units.NUMBER}$|^[A-Za-z][A-Za-z0-9_ -]*$|{VARIABLE}"}
        return {"anyOf": [{"type": "number", "minimum": 0, "maximum": 64}, text]}


class GpusKind(Record[Gpus]):
    """`1`, `T4` or a mapping."""

    def __init__(self) -> None:
        fields = (
            Field("count", Number(), "How many in each node; a fraction shares one.", "1", "2"),
            Field("model", Text("a GPU model such as T4"), "Which model.", "any", "T4"),
            Field("vendor", Choice("nvidia", "amd"), "Whose GPUs.", "what the machine has", "amd"),
            Field("devices", ListOf(Text()), "Which devices of the host.", "any", '["0", "1"]'),
        )
        super().__init__(Gpus, fields, short=GpusShort(), word=GpusShort.word)

    def build(self, values: dict[str, Any], tree: Table, path: Path, log: Log) -> Gpus:
        del log
        devices = values.get("devices", ())
        if devices and "count" not in values:
            values["count"] = float(len(devices))
        gpus = Gpus(**values)
        if devices and gpus.count != len(devices):
            count = units.say_number(gpus.count)
            raise Bad(tree.mark, f"`{dotted(path)}` names {len(devices)} devices, but its count is {count}")
        return gpus

    def write(self, value: Gpus) -> Plain:
        short = GpusShort().write(value)
        try:
            same = GpusShort().parse(str(short)) == value
        except Malformed:  # a model such as 4090 that reads like a number
            same = False
        return short if same else dict(self.parts(value))

    def show(self, value: Gpus, tree: Tree) -> str:
        del tree
        count = units.say_number(value.count)
        names = [value.vendor or "", value.model or ""]
        return " ".join([count, *(name for name in names if name)])


class GroupKind(Record[Group]):
    """One group of workers: how many, and what each of them is."""

    def __init__(self, own: Sequence[Field], node: Record[Node]) -> None:
        super().__init__(Group, (*own, *node.fields), known=node.known)
        self.node = node
        self.own = {field.name for field in own}

    def build(self, values: dict[str, Any], tree: Table, path: Path, log: Log) -> Group:
        # Without a count it is none until the place's default is known.
        count, idle = values.pop("count", Count(low=0, high=0)), values.pop("idle", None)
        least = values.pop("at_least", None)
        try:
            if log.sound(dotted((*path, "count"))):
                count = with_least(count, least, tree, path)
        except Bad as bad:
            log.catch(bad, (*path, "at_least"))
        return Group(name=path[-1], count=count, node=Node(**values), idle=idle)

    def schema(self) -> Schema:
        return {**super().schema(), "dependentRequired": {"at_least": ["count"]}}

    def parts(self, value: Group) -> Iterator[tuple[str, Plain]]:
        yield "count", CountKind().write(value.count)
        grows = value.count is not None and value.count.low < value.count.high
        if value.idle is not None or grows:  # without it a growing group would get the default
            yield "idle", self.by_key["idle"].kind.write(value.idle)
        yield from self.node.parts(value.node)


class Workers(Kind[tuple[Group, ...]]):
    """A number, a range, one group, or named groups."""

    word = "a number, a range such as 0..4, one group, or named groups"

    def __init__(self, group: GroupKind, name: Text) -> None:
        self.group = group
        self.name = name

    def read(self, tree: Tree, path: Path, log: Log) -> tuple[Group, ...]:
        if is_empty(tree):
            tree = Table((), tree.mark)
        if isinstance(tree, Scalar):
            count = Span().read(tree, path, log)
            # Noted as the key that it stands for, so that both forms are judged alike.
            log.given[(*path, "count")] = Given(log.given[path].key, tree, str(Span().write(count)))
            return (Group(name=ONE_GROUP, count=count),)
        if not isinstance(tree, Table):
            raise Bad(tree.mark, f"`{dotted(path)}` wants {self.word}, not {tree}")
        if not self._named(tree):
            values = self.group.values(tree, path, log)
            group = self.group.build(values, tree, path, log)
            return (Group(name=ONE_GROUP, count=group.count, node=group.node, idle=group.idle),)
        return tuple(self._groups(tree, path, log))

    def _named(self, tree: Table) -> bool:
        """Groups are mappings under names of their own; a key of a group makes the whole one group."""
        return (
            bool(tree.entries)
            and all(isinstance(value, Table) or is_empty(value) for key, value in tree)
            and not all(key.text in self.group.by_key for key, _ in tree)
        )

    def _groups(self, tree: Table, path: Path, log: Log) -> Iterator[Group]:
        for key, part in tree:
            here = (*path, key.text)
            try:
                self._check_name(key, path, log)
                yield self.group.take(key, part, here, log)
            except Bad as bad:
                log.catch(bad, here)

    def _check_name(self, key: Scalar, path: Path, log: Log) -> None:
        if key.text == HEAD:
            raise Bad(
                key.mark,
                "a group cannot be called `head`: that is the head's own name; it has a key of its own",
            )
        if key.text in self.group.by_key:
            raise Bad(key.mark, f"a group cannot be called `{key.text}`: that is a key of groups")
        try:
            self.name.read(key, path, log)
        except Bad as bad:
            raise Bad(key.mark, f"a group's name wants {self.name.word}, not {key}", bad.nearest) from None

    def write(self, value: tuple[Group, ...]) -> Plain:
        if len(value) == 1 and value[0].name == ONE_GROUP:
            parts = dict(self.group.parts(value[0]))
            simple = set(parts) == {"count"} and not isinstance(parts["count"], Mapping)
            return parts["count"] if simple else parts
        return {group.name: dict(self.group.parts(group)) for group in value}

    def show(self, value: tuple[Group, ...], tree: Tree) -> str:
        del tree
        return ", ".join(group.name for group in value)

    def schema(self) -> Schema:
        reserved = sorted({HEAD, *self.group.by_key})
        named = {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": f"^(?:{self.name.form})$", "not": {"enum": reserved}},
            "additionalProperties": {"$ref": "#/$defs/group"},
        }
        return {"anyOf": [Span().schema(), {"$ref": "#/$defs/group"}, named]}
