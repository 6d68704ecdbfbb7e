"""What every command is made of: the common options, Ray's `VERB FILE` habit, help with an example."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from heliostat.cli.options import COMMON, common, remember, said

DASHES = "helio.dashes"  # in ctx.meta: whether the first word came after `--`


class HelioCommand(click.Command):
    """A command with the common options, and an example at the end of its help."""

    def __init__(
        self, name: str, *, example: str = "", words: int = 0, own: Sequence[str] = (), **rest: Any
    ) -> None:
        super().__init__(name, **rest)
        self.example = example
        self.words = words  # how many positional words of its own it cannot do without
        self.params.extend(common(own))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        place = self._file_word(ctx, args)
        if place is not None:
            remember(ctx, file=args[place])
            args = [*args[:place], *args[place + 1 :]]
        ctx.meta[DASHES] = self.after_dashes(ctx, args)
        return super().parse_args(ctx, args)

    def _file_word(self, ctx: click.Context, args: list[str]) -> int | None:
        """Where Ray's habit `helio VERB cluster.yaml …` put the file, if it did.

        Only the first positional word counts, only when it is an existing YAML file that describes a cluster,
        and only when enough words are left for the command itself: `helio push a.yaml b` sends a.yaml.
        """
        place = self.first_word(ctx, args)
        if place is None or self.after_dashes(ctx, args) or said(ctx).file is not None:
            return None
        word, *rest = args[place:]
        own = [other for other in rest if not other.startswith("-")]
        yaml = word.endswith((".yaml", ".yml"))
        if not os.path.isfile(word):
            if yaml and not any(isinstance(param, click.Argument) for param in self.params):
                raise click.UsageError(f"there is no file {word}", ctx)
            return None
        if not yaml or len(own) < self.needed(ctx):
            return None
        # Where a command takes words of its own, a YAML file may be one of them: somebody's data, to be sent.
        return place if not self.words or describes_a_cluster(word) else None

    def needed(self, _ctx: click.Context) -> int:
        """How many words of its own it cannot do without, here and now."""
        return self.words

    def first_word(self, ctx: click.Context, args: list[str]) -> int | None:
        """Where the first word stands that is no option and no option's value."""
        options: list[click.Parameter] = [param for param in self.params if isinstance(param, click.Option)]
        parser = click.Command(self.name, params=options, add_help_option=False).make_parser(ctx)
        parser.allow_interspersed_args = False
        try:
            _, rest, _ = parser.parse_args(list(args))
        except click.UsageError:
            return None  # the real parse tells it better
        return len(args) - len(rest) if rest else None

    def after_dashes(self, ctx: click.Context, args: list[str]) -> bool:
        """Whether the first word comes after a `--`."""
        place = self.first_word(ctx, args)
        return place is not None and place > 0 and args[place - 1] == "--"

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = said(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verb's own options first; those of every command in a section of their own."""
        shown = [(p, p.get_help_record(ctx)) for p in self.get_params(ctx) if isinstance(p, click.Option)]
        own = [record for param, record in shown if record and param.name not in COMMON]
        every = [record for param, record in shown if record and param.name in COMMON]
        if own:
            with formatter.section("Options"):
                formatter.write_dl(own)
        with formatter.section("Options of every command"):
            formatter.write_dl(every)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.example:
            return
        with formatter.section("Example"):
            for line in self.example.strip().splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line.strip()}\n")


def describes_a_cluster(path: str) -> bool:
    """Whether a file has a key that only a cluster's file has at its top: ours, or Ray's."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 16).splitlines()
    except OSError:
        return True  # reading it tells what is wrong
    return any(line.startswith(("cluster:", "cluster_name:", "where:", "provider:")) for line in lines)


def helio_command(
    name: str,
    *,
    example: str,
    words: int = 0,
    own: Sequence[str] = (),
    cls: type[HelioCommand] = HelioCommand,
    **rest: Any,
) -> Callable[[Callable[..., Any]], HelioCommand]:
    """Like `click.command`, for our own kind."""

    def decorate(function: Callable[..., Any]) -> HelioCommand:
        decorated = click.command(name, cls=cls, example=example, words=words, own=own, **rest)(function)
        assert isinstance(decorated, HelioCommand)  # noqa: S101 - click's own typing loses the class
        return decorated

    return decorate
