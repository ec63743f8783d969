"""A server that holds thousands of connections at once.

One event loop reads requests and writes answers. An executor, threads or
processes, does what takes time, in the order in which it was asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor
from http import HTTPStatus
from typing import Any

from . import service_limits, service_messages
from .service_messages import Answer, Refused, Request, error

__all__ = ["Server", "say"]

IDLE_SECONDS = 75.0  # between two requests
READ_SECONDS = 60.0  # for a request, from its first byte to its last
WRITE_SECONDS = 60.0  # for a client to read its answer
LINGER_SECONDS = 2.0  # for a client to see why its request was not read
# Turns of the event loop, until which a request that has arrived is being read.
TURNS_TO_READ = 20


def say(what: str) -> None:
    sys.stderr.write(f"gavel.service: {what}\n")


class Server:
    """Listens from the start, and answers once `serve_forever` is called.

    `handle` answers a request at once, or gives the work that answers it, which
    `pool` does, up to `at_once` at a time.
    """

    def __init__(
        self,
        address: tuple[str, int],
        handle: Callable[[Request], Answer | Callable[[], Answer]],
        pool: Executor,
        at_once: int,
    ) -> None:
        self._handle, self._pool, self._at_once = handle, pool, at_once
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listening = socket.create_server(address, family=family, backlog=service_limits.BACKLOG)
        self._listening.setblocking(False)
        self.server_port: int = self._listening.getsockname()[1]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ended = self._reads_no_more = False
        # Each connection, and whether a request of it has begun to arrive and is not answered.
        self._connections: dict[asyncio.Task[None], bool] = {}

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: Any) -> None:
        self.server_close()

    def server_close(self) -> None:
        """Stops listening, and waits for what the pool does."""
        self._listening.close()
        self._pool.shutdown()

    def shutdown(self) -> None:
        """Has `serve_forever` answer the requests that have arrived, and
        return. May be called in any thread."""
        self._is_ended = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # It has returned.
                self._loop.call_soon_threadsafe(self._ending.set)

    def serve_forever(self) -> None:
        """Serves until `shutdown` or, in the main thread, SIGTERM or SIGINT."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._ending = asyncio.Event()
        self._turns = asyncio.Semaphore(self._at_once)
        self._loop = asyncio.get_running_loop()
        if self._is_ended:
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            # Only the main thread may, and not on Windows.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                self._loop.add_signal_handler(number, self._signalled)
        always = [asyncio.create_task(self._accept()), asyncio.create_task(service_limits.watch(say))]
        await self._ending.wait()
        for task in always:
            task.cancel()
        await asyncio.gather(*always, return_exceptions=True)
        with contextlib.suppress(OSError):  # Until nobody waits to be accepted.
            while True:
                self._take(*self._listening.accept())
        self._listening.close()
        for _ in range(TURNS_TO_READ):
            await asyncio.sleep(0)
        self._reads_no_more = True
        for task, is_busy in self._connections.items():
            if not is_busy:
                task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _signalled(self) -> None:
        say(f"ends after {sum(self._connections.values())} requests, or at once with a second signal")
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        self._ending.set()

    async def _accept(self) -> None:
        is_full = False
        while True:
            try:
                connection, address = await asyncio.get_running_loop().sock_accept(self._listening)
            except ConnectionError:
                continue  # The client had already left.
            except OSError as why:  # Such as too many open files.
                if not is_full:
                    say(f"connections have to wait: {why}; raise `ulimit -Hn`, which the server uses up to the end")
                is_full = True
                await asyncio.sleep(0.2)
                continue
            is_full = False
            self._take(connection, address)

    def _take(self, connection: socket.socket, address: Any) -> None:
        connection.setblocking(False)
        task = asyncio.create_task(self._connected(connection, f"{address[0]}:{address[1]}"))
        self._connections[task] = False
        task.add_done_callback(self._connections.pop)

    async def _connected(self, connection: socket.socket, peer: str) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=service_messages.LONGEST_HEAD)
        # So that `drain` waits until the system has everything.
        writer.transport.set_write_buffer_limits(0)
        try:
            while await self._exchange(reader, writer, peer):
                pass
        except (OSError, asyncio.IncompleteReadError) as why:
            say(f"{peer}: the client broke off: {why}")
        except Exception as why:
            say(f"{peer}: an error of this server: {why!r}")
        finally:
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> bool:
        """Answers a request; whether another one may follow."""
        try:
            first = await asyncio.wait_for(reader.read(1), IDLE_SECONDS)
        except (OSError, asyncio.TimeoutError):
            first = b""
        if not first:
            return False
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = True
        try:
            request = await asyncio.wait_for(service_messages.read(first, reader, writer), READ_SECONDS)
        except asyncio.TimeoutError:
            late = error(HTTPStatus.REQUEST_TIMEOUT, f"the request was not complete after {READ_SECONDS:g} s")
            return await self._refuse(late, reader, writer, peer)
        except Refused as why:
            return await self._refuse(why.answer, reader, writer, peer)
        answer = self._handle(request)
        if not isinstance(answer, Answer):
            async with self._turns:
                # Nobody waits for work whose client has gone. One that only sends no more looks the same.
                if reader.at_eof():
                    say(f"{peer}: the client gave up before its turn; {self._at_once} requests are judged at once")
                    return False
                answer = await self._done(answer)
        stays = request.stays and not self._ending.is_set()
        sent = await self._send(answer, stays, writer, peer)
        self._connections[task] = False
        return sent and stays and not self._reads_no_more

    async def _done(self, work: Callable[[], Answer]) -> Answer:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except BrokenExecutor:
            return error(HTTPStatus.SERVICE_UNAVAILABLE, "a worker process died (killed, out of memory, or crashed)")
        except Exception as why:
            return error(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(why).__name__}: {why}")

    async def _refuse(
        self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str
    ) -> bool:
        """Answers a request that was not read. Closing at once would reset the
        connection, and a client that still sends would not see the answer."""
        if await self._send(answer, False, writer, peer):
            writer.write_eof()

            async def rest() -> None:
                while await reader.read(1 << 16):
                    pass

            with contextlib.suppress(asyncio.TimeoutError, OSError):
                await asyncio.wait_for(rest(), LINGER_SECONDS)
        return False

    async def _send(self, answer: Answer, stays: bool, writer: asyncio.StreamWriter, peer: str) -> bool:
        if answer.error is not None:
            say(f"{peer}: {answer.status.value}: {answer.error}")
        writer.write(service_messages.written(answer, stays))
        try:
            await asyncio.wait_for(writer.drain(), WRITE_SECONDS)
        except asyncio.TimeoutError:
            say(f"{peer}: the client did not read its answer in {WRITE_SECONDS:g} s")
            return False
        return True
