"""`helio open dashboard`: the page, logged in."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.engine.ports import Site
    from heliostat.ray.doorway import Doorway


@helio_command(
    "open",
    help="Open the cluster's dashboard, or the page of a service, in the browser, signed in, until Ctrl-C. "
    "The address works once, for you, on this machine; without a browser here it is printed.",
    short_help="Open the dashboard in the browser.",
    example="helio open dashboard\nhelio open grafana\nhelio open dashboard --no-browser --port 8265",
)
@click.argument(
    "what",
    type=click.Choice(["dashboard", "grafana", "prometheus", "notebook", "storage"]),
    default="dashboard",
)
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Listen here (default: any free port)."
)
@click.pass_obj
def command(options: Options, what: str, no_browser: bool, port: int) -> int:
    from heliostat.cli.session import Session

    session = Session(options)
    browser = not no_browser and has_browser()
    session.play(lambda site: _open(session, site, what, port, browser=browser))
    return 0


@asynccontextmanager
async def _door(site: Site, what: str, port: int) -> AsyncIterator[Doorway]:
    """To the dashboard, or to the page of what stands beside Ray."""
    from heliostat.core.errors import UsageError
    from heliostat.engine.nodes import head
    from heliostat.engine.services import login_of, page_of, service
    from heliostat.ray.doorway import dashboard, page

    found = await head(site)
    if what == "dashboard":
        async with dashboard(site.ground, found, port) as door:
            yield door
        return
    ref = await service(site, what)
    if ref is None:
        key = "observe" if what in ("grafana", "prometheus") else what
        asks = "storage: embedded" if what == "storage" else key
        raise UsageError(f"{site.spec.cluster} has no {what}", fix=f"`{asks}` in its file asks for it")
    login = await login_of(site, ref)
    async with page_of(site, ref, found) as address, page(site.ground, found, address, login, port) as door:
        yield door


async def _open(session: Session, site: Site, what: str, port: int, *, browser: bool) -> None:
    import asyncio

    async with _door(site, what, port) as door:
        address = door.address()
        session.show([address], {"verb": "open", "url": address})
        with shown(door.address()) if browser else no_page():
            session.renderer.screen.line(f"{what} is open there, once, until Ctrl-C")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return  # Ctrl-C is how it ends


def has_browser() -> bool:
    """Whether a page can be shown here: text browsers would take the terminal."""
    if sys.platform in ("win32", "darwin"):
        return "SSH_CONNECTION" not in os.environ
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


@contextmanager
def shown(address: str) -> Iterator[None]:
    """The browser is sent to a private page that leads on: everybody can read how programs are started."""
    import tempfile
    import webbrowser
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="helio-open-") as folder:
        page = Path(folder, "dashboard.html")
        page.touch(0o600)
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">', "utf-8")
        webbrowser.open(page.as_uri())
        yield


@contextmanager
def no_page() -> Iterator[None]:
    """No browser here."""
    yield
