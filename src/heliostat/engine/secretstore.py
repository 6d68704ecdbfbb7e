"""The values of the secrets that a file names, from this machine; they travel only to where jobs run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from heliostat.core.errors import UsageError
from heliostat.core.resource import Ref
from heliostat.core.spec import Spec
from heliostat.core.submission import SECRETS, WRAPPER, dotenv
from heliostat.engine.ports import Shell, Site
from heliostat.engine.sync.stores import distinct

DOTENV = ".env"
LAY = 'umask 077 && cat > "$1" && chmod "$2" "$1"'  # the content comes by stdin: argv is for all to read


def secret_values(spec: Spec, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Each secret from the environment, else the file of secrets, else the keyring; all that lack at once."""
    if not spec.secrets:
        return {}
    environ = os.environ if environ is None else environ
    kept = _file(spec)
    found: dict[str, str] = {}
    for name in spec.secrets:
        value = environ.get(name) or kept.get(name) or _keyring(name)
        if value:
            found[name] = value
    missing = [name for name in spec.secrets if name not in found]
    if missing:
        raise UsageError(
            f"{'a secret has' if len(missing) == 1 else 'secrets have'} no value: {', '.join(missing)}",
            why=f"looked in the environment, in {spec.secrets_from or DOTENV} and in the keyring",
            fix=f"export {missing[0]}=…, or write {missing[0]}=… into {spec.secrets_from or DOTENV}",
        )
    return found


def _file(spec: Spec) -> dict[str, str]:
    path = Path(spec.folder or ".", Path(spec.secrets_from or DOTENV).expanduser())
    try:
        return dotenv(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if spec.secrets_from is None:
            return {}
        raise UsageError(f"there is no file {path}", why="secrets_from: names it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", why=str(error), fix="it holds NAME=value lines") from error


def _keyring(name: str) -> str | None:
    """The system's keyring, for those who have the `keyring` package."""
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring  # type: ignore[import-not-found,unused-ignore]  # optional, used where it is

    value = keyring.get_password("heliostat", name)
    return str(value) if value else None


async def lay_secrets(site: Site, nodes: Sequence[Ref], folder: str, secrets: str, wrapper: str) -> None:
    """Write them beside the run on every disk, for the owner's eyes only."""
    for ref in distinct(nodes):
        async with site.ground.shell(ref) as shell:
            await _lay(shell, f"{folder}/{SECRETS}", secrets, "600", ref)
            await _lay(shell, f"{folder}/{WRAPPER}", wrapper, "700", ref)


async def _lay(shell: Shell, path: str, text: str, mode: str, ref: Ref) -> None:
    result = await shell.run(["sh", "-c", LAY, "sh", path, mode], stdin=text.encode())
    if result.code:
        raise UsageError(
            f"{ref.key} cannot take the job's secrets",
            why=result.err.decode(errors="replace").strip(),
            fix="`helio status` says how the node is",
        )
