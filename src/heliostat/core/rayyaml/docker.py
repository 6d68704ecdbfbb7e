"""Ray's `docker` as `image`, `docker`, `volumes`, `env` and `shm`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from heliostat.core import units
from heliostat.core.decode.log import Path
from heliostat.core.decode.tree import Scalar
from heliostat.core.draft import Draft
from heliostat.core.rayyaml.reader import At, Reader

_OURS = {"--network", "--net", "--name", "--rm", "-d", "--detach", "-it", "-i", "-t", "--gpus", "--runtime"}
_WITH_VALUE = {"--network", "--net", "--name", "--gpus", "--runtime"}
_SHORT = {"-v": "--volume", "-e": "--env"}
_WHY = "`docker.run` is the same for every node"


def whole(docker: Reader, head: Path, groups: Sequence[Path], draft: Draft) -> bool:
    """Read the cluster's `docker`; says whether nodes work in containers."""
    image = docker.take("image", "text")
    of_head = docker.take("head_image", "text")
    if of_head and not image:  # Ray wants either one image or one for each side
        image, of_head = of_head, None
    if image:
        draft.put(("image",), image.value, image.mark, image.key)
    special = [(of_head, [head]), (docker.take("worker_image", "text"), groups)]
    used = bool(image)
    for at, nodes in special:
        if at:
            used = True
            for path in nodes:
                draft.put((*path, "image"), at.value, at.mark, at.key)
    if used:
        _pull(docker, draft, image)
    _options(docker.take("run_options", "list"), [()], draft)
    _options(docker.take("head_run_options", "list"), [head], draft)
    _options(docker.take("worker_run_options", "list"), groups, draft)
    _others(docker, draft, used=used)
    return used


def of_group(docker: Reader, path: Path, draft: Draft) -> None:
    """Read the `docker` of one node type."""
    image = docker.take("worker_image", "text")
    if image:
        draft.put((*path, "image"), image.value, image.mark, image.key)
    pull = docker.take("pull_before_run", "flag")
    if pull is not None:
        draft.lost(pull.mark, pull.key, "`docker.pull` is the same for every node")
    _options(docker.take("worker_run_options", "list"), [path], draft)


def _pull(docker: Reader, draft: Draft, image: At | None) -> None:
    pull = docker.take("pull_before_run", "flag")
    mark = pull.mark if pull else image.mark if image else docker.mark
    always = pull is None or pull.value
    draft.put(("docker", "pull"), "always" if always else "missing", mark, pull.key if pull else "")


def _others(docker: Reader, draft: Draft, *, used: bool) -> None:
    whys = {
        "container_name": "heliostat names its containers itself",
        "disable_automatic_runtime_detection": "containers get the GPUs that `gpus` says",
        "disable_shm_size_detection": "`shm` is the size of /dev/shm",
        "use_podman": "the engine that the host has is used",
    }
    for key, why in whys.items():
        at = docker.take(key, "text" if key == "container_name" else "flag")
        if at:
            (draft.ours if used and key == "container_name" else draft.lost)(at.mark, at.key, why)


def _options(at: At | None, nodes: Sequence[Path], draft: Draft) -> None:
    for item in at.value if at else ():
        if re.search(r"\$\(|[`;&|<>]", item.text):
            draft.lost(item.mark, at.key if at else "", f"no shell reads `{item.text}`")
            continue
        try:
            words = shlex.split(item.text)
        except ValueError:
            draft.lost(item.mark, at.key if at else "", f"a quote in `{item.text}` is never closed")
            continue
        for flag, value in _pairs(words):
            for path in nodes:
                _option(flag, value, item, at.key if at else "", path, draft)


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Flags with their values; what stands alone has none."""
    left = list(words)
    while left:
        word = left.pop(0)
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not equals and re.match(r"-[ve].", flag) and not flag.startswith("--"):
            flag, value = flag[:2], flag[2:]
        elif not equals and left and not left[0].startswith("-"):
            value = left.pop(0)
        yield _SHORT.get(flag, flag), value


def _option(flag: str, value: str, item: Scalar, key: str, path: Path, draft: Draft) -> None:
    home = re.sub(r"^(?:\$HOME|\$\{HOME\})(?=/)", "~", value)
    volume = re.fullmatch(r"([^:]+):(/[^:]*)", home)
    name, equals, text = value.partition("=")
    if flag in _OURS:
        draft.ours(
            item.mark,
            key,
            f"`{flag}`: heliostat starts containers so that nodes see one another and their GPUs",
        )
    elif "$" in home or "`" in value:
        draft.lost(item.mark, key, f"no shell fills in `{value}`")
    elif flag == "--volume" and volume:
        draft.add((*path, "volumes"), {volume[1]: volume[2]}, item.mark, key)
    elif flag == "--env" and equals:
        draft.add((*path, "env"), {name: text}, item.mark, key)
    elif flag == "--shm-size" and (size := shm(value)):
        for node in [path] if path else [("head",), *_groups(draft)]:
            draft.put((*node, "shm"), size, item.mark, key)
    elif path:
        draft.lost(item.mark, key, f"`{item.text}`: {_WHY}")
    else:
        had = draft.leaf(("docker", "run"))
        more = [flag, value] if value else [flag]
        draft.put(("docker", "run"), [*(had.value if had else []), *more], item.mark, key)


def _groups(draft: Draft) -> list[Path]:
    return [
        ("workers", name) for name, part in draft.tree.get("workers", {}).items() if isinstance(part, dict)
    ]


def shm(text: str) -> str:
    """A size as Docker writes it, as we do; empty when it is none.

    >>> shm("12g"), shm("512m"), shm("10.24gb")
    ('12 GiB', '512 MiB', '10995116277 B')
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?", text.strip().lower())
    if not found:
        return ""
    return units.say_size(
        units.exactly(found[1], {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}[found[2]])
    )
