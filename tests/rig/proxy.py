"""A link that can be slow, cut or silent: a TCP proxy, for where the kernel has no network emulator."""

from __future__ import annotations

import asyncio
import threading


class Proxy:
    """Listens on loopback and leads to `target`; bytes arrive `delay` seconds later, each way."""

    def __init__(self, target: tuple[str, int], delay: float = 0.0) -> None:
        self.target = target
        self.delay = delay
        self.name = ""
        self.port = 0
        self.silent = False  # takes bytes and loses them, as a partition does
        self.connections = 0  # how many came in all
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(ready,), name="proxy", daemon=True)
        self._thread.start()
        ready.wait(5)

    def _main(self, ready: threading.Event) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            up, to = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, to}
        await asyncio.gather(self._pump(reader, to), self._pump(up, writer))
        self._open -= {writer, to}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                data = await reader.read(65536)
            except OSError:
                data = b""
            if not self.silent:
                # Equal delays keep the order; a queue would only say the same at greater length.
                self._loop.call_later(self.delay, self._write, writer, data)
            if not data:
                return

    def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if data and not writer.is_closing():
            writer.write(data)
        elif not data:
            writer.close()

    def cut(self) -> None:
        """Break every connection that is open now; new ones may come."""

        def abort() -> None:
            for writer in list(self._open):
                writer.transport.abort()

        self._loop.call_soon_threadsafe(abort)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
