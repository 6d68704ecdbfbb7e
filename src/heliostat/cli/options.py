"""The options that every command takes, before the verb or after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import click


class Options(NamedTuple):
    """What was said on the command line beside the verb's own words."""

    file: str | None = None
    sets: tuple[str, ...] = ()
    json: bool = False
    yes: bool = False
    quiet: bool = False
    plain: bool = False

    def show(self, lines: Iterable[str], data: Mapping[str, Any]) -> int:
        """Print a result that needed no cluster."""
        from heliostat.cli.render import renderer

        renderer(json=self.json, quiet=self.quiet, plain=True).result(list(lines), data)
        return 0


def said(ctx: click.Context) -> Options:
    """All of them so far, from both sides of the verb."""
    options: Options = ctx.meta.get("helio.options", Options())
    return options


def remember(ctx: click.Context, **changes: Any) -> None:
    """Add to what was said; `ctx.meta` is one mapping for the whole chain of contexts."""
    ctx.meta["helio.options"] = said(ctx)._replace(**changes)


def _file(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        remember(ctx, file=value)


def _sets(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> None:
    remember(ctx, sets=(*said(ctx).sets, *value))


def _switch(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def callback(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            remember(ctx, **{name: True})

    return callback


def common(own: Sequence[str] = ()) -> list[click.Option]:
    """Fresh options for one command, without the letters that it has for itself.

    Eager: an error in another word is then told in the wanted form.
    """

    def option(*names: str, text: str, callback: Callable[..., None], **rest: Any) -> click.Option:
        rest = {"is_eager": True, "expose_value": False, **rest}
        return click.Option([name for name in names if name not in own], help=text, callback=callback, **rest)

    def switch(*names: str, text: str) -> click.Option:
        return option(*names, text=text, callback=_switch(names[-1].lstrip("-")), is_flag=True)

    return [
        option(
            "-f", "--file", metavar="FILE", callback=_file, text="The file (else the nearest helio.yaml)."
        ),
        option(
            "--set", metavar="KEY=VALUE", callback=_sets, multiple=True, text="Replace a value of the file."
        ),
        switch("--json", text="JSON lines on stdout, for programs."),
        switch("-y", "--yes", text="Answer yes to every question."),
        switch("-q", "--quiet", text="No progress: results, warnings and errors only."),
        switch("--plain", text="No colours, no moving lines."),
    ]


COMMON = frozenset({"file", "set", "json", "yes", "quiet", "plain", "help", "_click_default_help"})
