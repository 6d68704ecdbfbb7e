"""ShellContract: what every way of reaching a node must do."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heliostat.engine.ports import Result, Shell
from heliostat.testing.scene import Scene, check, refusal

BIG = 5_000_000
SERVER = """
import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"you said " + c.recv(100))
    c.close()
"""


@contextmanager
def folder() -> Iterator[Path]:
    """A place of our own on this side."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


class There:
    """A folder of a check's own on the node."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.path = f"/tmp/helio-contract-{secrets.token_hex(4)}"  # noqa: S108  (an unguessable name)

    async def __aenter__(self) -> str:
        await sh(self.shell, 'mkdir -m 700 "$1"', self.path)
        return self.path

    async def __aexit__(self, *_: object) -> None:
        await sh(self.shell, 'rm -rf "$1"', self.path)


async def sh(shell: Shell, script: str, *words: str) -> bytes:
    """A script's output; it must succeed."""
    result = await shell.run(["sh", "-c", script, "sh", *words])
    assert result.code == 0, result
    return result.out


def tree(path: Path) -> dict[str, object]:
    """Everything in a folder: contents, the right to execute, where links lead."""
    found: dict[str, object] = {}
    for each in sorted(path.rglob("*")):
        name = str(each.relative_to(path))
        if each.is_symlink():
            found[name] = f"-> {os.readlink(each)}"
        elif each.is_file():
            found[name] = (each.read_bytes(), bool(each.stat().st_mode & 0o100))
        else:
            found[name] = "folder"
    return found


def plant(path: Path) -> None:
    """A folder with what is easily lost on the way."""
    (path / "deep" / "er").mkdir(parents=True)
    (path / "empty").mkdir()
    (path / "deep" / "er" / "a file with spaces, ünd 'quotes'").write_bytes(b"\0\xff\r\n")
    (path / "run.sh").write_text("#!/bin/sh\necho run\n")
    (path / "run.sh").chmod(0o755)
    (path / "nothing").write_bytes(b"")
    (path / "link").symlink_to("run.sh")
    (path / "there").symlink_to("deep")
    (path / "-dash").write_text("-n")


class ShellContract:
    """run, push, pull, forward, attach."""

    @check
    async def test_exit_codes_arrive(self, scene: Scene) -> None:
        async with scene.shell() as shell:
            for code in (0, 1, 7, 127, 255):
                assert await shell.run(["sh", "-c", f"exit {code}"]) == Result(code)

    @check
    async def test_signals_arrive(self, scene: Scene) -> None:
        async with scene.shell() as shell:
            for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
                assert (await shell.run(["sh", "-c", f"kill -{int(number)} $$"])).code == -number

    @check
    async def test_what_is_not_a_program_says_so(self, scene: Scene) -> None:
        async with scene.shell() as shell:
            missing = await shell.run(["no-such-program-anywhere"])
            assert missing.code == 127
            assert b"no-such-program-anywhere" in missing.err
            assert (await shell.run(["/etc/passwd"])).code == 126

    @check
    async def test_words_arrive_as_they_are(self, scene: Scene) -> None:
        words = ["", " ", "a b", "'", '"', "$HOME", "`id`", "a\nb", "*", "\\", "ü", "-n", ";", "&", "#", "~"]
        async with scene.shell() as shell:
            result = await shell.run(["sh", "-c", 'printf "%s\\0" "$@"', "sh", *words])
        assert result.out == b"".join(word.encode() + b"\0" for word in words)

    @check
    async def test_input_arrives_to_the_byte_and_ends(self, scene: Scene) -> None:
        data = bytes(range(256)) * 4096
        async with scene.shell() as shell:
            assert (await shell.run(["cat"], stdin=data)).out == data
            assert (await shell.run(["cat"])).out == b""
            assert (await shell.run(["true"], stdin=data)).code == 0, "not everybody reads to the end"

    @check
    async def test_large_output_of_both_streams_arrives_whole(self, scene: Scene) -> None:
        script = f"head -c {BIG} /dev/zero | tr '\\0' o; head -c {BIG} /dev/zero | tr '\\0' e >&2; exit 3"
        async with scene.shell() as shell:
            result = await shell.run(["sh", "-c", script])
        assert (result.code, len(result.out), len(result.err)) == (3, BIG, BIG)
        assert (set(result.out), set(result.err)) == ({ord("o")}, {ord("e")})

    @check
    async def test_output_comes_as_it_is_written(self, scene: Scene) -> None:
        got = {"stdout": b"", "stderr": b""}
        first = asyncio.Event()

        def take(stream: str, data: bytes) -> None:
            got[stream] += data
            if b"first" in got["stdout"]:
                first.set()

        async with scene.shell() as shell, There(shell) as there:
            script = 'echo first; echo bad >&2; while [ ! -e "$1/go" ]; do sleep 0.05; done; echo last'
            task = asyncio.ensure_future(shell.run(["sh", "-c", script, "sh", there], on_output=take))
            async with asyncio.timeout(scene.harness.patience):
                await first.wait()
                assert not task.done()
                await sh(shell, 'touch "$1/go"', there)
                assert await task == Result(0)
        assert got == {"stdout": b"first\nlast\n", "stderr": b"bad\n"}

    @check
    async def test_a_command_runs_where_it_is_told(self, scene: Scene) -> None:
        async with scene.shell() as shell, There(shell) as there:
            assert (await shell.run(["pwd"], cwd=there)).out.decode().strip() == there

    @check
    async def test_the_environment_is_seen_by_the_command_alone(self, scene: Scene) -> None:
        secret = f"value-{secrets.token_hex(8)} 'quoted' $HOME ü\nsecond line"
        name = secret.split(maxsplit=1)[0].encode()
        async with scene.shell() as shell:
            script = 'printf %s "$HELIO_PROBE"; cat /proc/[0-9]*/cmdline >&2 2>/dev/null; true'
            result = await shell.run(["sh", "-c", script], env={"HELIO_PROBE": secret})
            here = b"".join(_arguments())
            assert result.out.decode() == secret
            assert name not in result.err, "it is in the arguments of a process there"
            assert name not in here, "it is in the arguments of a process here"
            later = await shell.run(["sh", "-c", 'printf %s "$HELIO_PROBE"'])
            assert later.out == b"", "it stayed"

    @check
    async def test_cancelling_ends_the_command_and_its_children(self, scene: Scene) -> None:
        seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        text = b""

        def take(_stream: str, data: bytes) -> None:
            nonlocal text
            text += data
            if text.count(b"\n") == 2 and not seen.done():
                seen.set_result(text.decode())

        async with scene.shell() as shell:
            script = "sleep 1000 & echo $!; sh -c 'sleep 1000; :' & echo $!; wait"
            task = asyncio.ensure_future(shell.run(["sh", "-c", script], on_output=take))
            async with asyncio.timeout(scene.harness.patience):
                pids = (await seen).split()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()

            async def gone() -> bool:
                # One that has ended but was not collected yet has ended.
                living = 'for p; do grep -qs "^State:.[^ZX]" /proc/$p/status && exit 0; done; exit 1'
                return (await shell.run(["sh", "-c", living, "sh", *pids])).code == 1

            await scene.until(gone, "what was cancelled to end")

    @check
    async def test_commands_run_side_by_side(self, scene: Scene) -> None:
        async with scene.shell() as shell:
            results = await asyncio.gather(*(shell.run(["sh", "-c", f"exit {code}"]) for code in range(8)))
        assert [result.code for result in results] == list(range(8))

    @check
    async def test_a_folder_goes_there_and_comes_back(self, scene: Scene) -> None:
        async with scene.shell() as shell, There(shell) as there:
            with folder() as here:
                (here / "one").mkdir()
                plant(here / "one")
                await sh(
                    shell, 'mkdir -p "$1/new" && echo stays >"$1/new/old" && echo x >"$1/new/run.sh"', there
                )
                await shell.push(str(here / "one"), f"{there}/new")
                assert await sh(shell, 'cat "$1/new/old"; "$1/new/link"', there) == b"stays\nrun\n"
                await shell.pull(f"{there}/new", str(here / "two"))
                assert (here / "two" / "old").read_text() == "stays\n"
                (here / "two" / "old").unlink()
                assert tree(here / "two") == tree(here / "one")

    @check
    async def test_a_file_goes_there_and_comes_back(self, scene: Scene) -> None:
        data = secrets.token_bytes(BIG)
        async with scene.shell() as shell, There(shell) as there:
            with folder() as here:
                (here / "one").write_bytes(data)
                await shell.push(str(here / "one"), f"{there}/made/for it/file")
                await shell.push(str(here / "one"), f"{there}/made/for it/file")
                assert await sh(shell, 'ls -A "$1/made/for it"', there) == b"file\n", "no part stays"
                await shell.pull(f"{there}/made/for it/file", str(here / "back"))
                assert (here / "back").read_bytes() == data
                assert sorted(each.name for each in here.iterdir()) == ["back", "one"]

    @check
    async def test_what_is_not_there_cannot_be_copied(self, scene: Scene) -> None:
        async with scene.shell() as shell, There(shell) as there:
            with folder() as here:
                for copy in (
                    shell.push(str(here / "missing"), f"{there}/x"),
                    shell.pull(f"{there}/missing", str(here / "x")),
                ):
                    error = await refusal(copy)
                    assert error is not None, "it was copied"
                    assert "missing" in str(error)
                assert not (here / "x").exists()
                assert (await shell.run(["test", "-e", f"{there}/x"])).code == 1

    @check
    async def test_a_port_of_the_node_is_reached_from_here(self, scene: Scene) -> None:
        python = scene.harness.python(await scene.node())
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def take(_stream: str, data: bytes) -> None:
            if not port.done():
                port.set_result(int(data))

        async with scene.shell() as shell:
            server = asyncio.ensure_future(shell.run([python, "-c", SERVER], on_output=take))
            try:
                async with asyncio.timeout(scene.harness.patience):
                    number = await port
                    async with shell.forward("127.0.0.1", number) as (host, near):
                        answers = await asyncio.gather(*(_ask(host, near, f"{n}") for n in range(4)))
                assert answers == [f"you said {n}".encode() for n in range(4)]
            finally:
                server.cancel()
                with suppress(asyncio.CancelledError):
                    await server

    @check
    async def test_attaching_is_a_command_of_this_machine(self, scene: Scene) -> None:
        async with scene.shell() as shell:
            argv, env = shell.attach(["sh", "-c", "cat; exit 7"])
            done = await asyncio.to_thread(
                subprocess.run,
                argv,
                env={**os.environ, **env},
                input=b"typed",
                capture_output=True,
                check=False,
                timeout=scene.harness.patience,
            )
        assert (done.returncode, done.stdout) == (7, b"typed")


def _arguments() -> Iterator[bytes]:
    """What every process of this machine was started with."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes()


async def _ask(host: str, port: int, text: str) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(text.encode())
    await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer
