"""The server of a reward under many, slow and broken clients."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

from gavel import Sample, service, service_limits, service_messages, service_server, service_workers

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
SCORED = {"verdicts": [{"score": 1.0, "metrics": {}}]}


def post(response: str, *headers: str) -> bytes:
    """A request about a response."""
    trajectory = {"finish_reason": "stop", "prompt_tokens": 3, "response_tokens": 2, "policy_version": None}
    sample = {
        "task_id": "7",
        "data_source": "sums",
        "group_index": 0,
        "prompt": [{"role": "user", "content": "2 + 2?"}],
        "trajectories": [{"messages": [{"role": "assistant", "content": response}], **trajectory}],
    }
    asked = {"protocol": service.PROTOCOL, "samples": [sample], "reference": {"prompt": "2 + 2?", "answer": "4"}}
    body = json.dumps(asked).encode()
    lines = ["POST /score HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Client:
    """A connection, as a context."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.file.close()
        self.socket.close()

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def answer(self) -> tuple[int, Any, str]:
        """The status, the body, and what becomes of the connection."""
        status = int(self.file.readline().split()[1])
        headers = {}
        while (line := self.file.readline()) != b"\r\n":
            name, _, value = line.decode().partition(":")
            headers[name] = value.strip()
        return status, json.loads(self.file.read(int(headers["content-length"]))), headers["connection"]

    def ask(self, request: bytes) -> tuple[int, Any, str]:
        self.send(request)
        return self.answer()

    def is_closed(self) -> bool:
        return self.file.read() == b""


@contextlib.contextmanager
def running(server: service_server.Server) -> Iterator[io.StringIO]:
    """Runs a server; gives what it says."""
    thread = threading.Thread(target=server.serve_forever)
    # Others on this machine may drop connections meanwhile.
    no_counters = mock.patch.object(service_limits, "COUNTERS", Path("/missing"))
    with no_counters, contextlib.redirect_stderr(io.StringIO()) as said:
        thread.start()
        try:
            yield said
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@contextlib.contextmanager
def served(score: Callable[..., Any], **options: Any) -> Iterator[tuple[Callable[[], Client], io.StringIO]]:
    server = service.server(score, **options)
    with running(server) as said:
        yield (lambda: Client(server.server_port)), said


def right(sample: Sample) -> float:
    return float(sample.response == "4")


class Connections(unittest.TestCase):
    def test_a_thousand_requests_at_once_are_answered(self) -> None:
        service_limits.raise_open_files()
        # All of them wait in the queue before the first is accepted.
        queue = service_limits.QUEUE
        if not queue.exists() or int(queue.read_text()) < 1024:
            self.skipTest("the system's queue of connections is too short")
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2200:
            self.skipTest("a process may not have a thousand connections")
        server = service.server(right)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(server.server_port)) for _ in range(1024)]
            for number, client in enumerate(clients):
                client.send(post("4" if number % 2 else "5"))
            with running(server):
                answers = [client.answer() for client in clients]
        self.assertEqual(
            answers,
            [
                (200, {"verdicts": [{"score": float(number % 2), "metrics": {}}]}, "keep-alive")
                for number in range(1024)
            ],
        )

    def test_what_has_arrived_is_answered_before_the_end(self) -> None:
        ended = threading.Event()

        def waits(sample: Sample) -> float:
            if sample.response == "wait":
                ended.wait(60)
            return 1.0

        server = service.server(waits)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(server.server_port)) for _ in range(20)]
            with running(server):
                self.assertEqual(clients[0].ask(post("4")), (200, SCORED, "keep-alive"))
                for client in clients:
                    client.send(post("wait"))
                server.shutdown()
                ended.set()
            self.assertEqual([client.answer() for client in clients], [(200, SCORED, "close")] * 20)

    def test_a_connection_has_several_requests(self) -> None:
        with served(right) as (connect, _):
            with connect() as client:
                self.assertEqual(client.ask(post("4")), (200, SCORED, "keep-alive"))
                self.assertEqual(client.ask(GET), (200, {"protocol": service.PROTOCOL}, "keep-alive"))
                client.send(post("4") + post("4", "connection: close"))
                self.assertEqual(client.answer(), (200, SCORED, "keep-alive"))
                self.assertEqual(client.answer(), (200, SCORED, "close"))
                self.assertTrue(client.is_closed())

    def test_a_body_may_come_in_chunks_and_after_a_question(self) -> None:
        head, _, body = post("4").partition(b"\r\n\r\n")
        head = re.sub(rb"content-length: \d+", b"transfer-encoding: chunked", head) + b"\r\n\r\n"
        chunks = [body[:7], body[7:]]
        sent = b"".join(b"%x;note=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        with served(right) as (connect, _), connect() as client:
            self.assertEqual(client.ask(head + sent + b"0\r\nlast: 1\r\n\r\n"), (200, SCORED, "keep-alive"))
            head, _, body = post("4", "expect: 100-continue").partition(b"\r\n\r\n")
            client.send(head + b"\r\n\r\n")
            self.assertEqual(client.file.readline() + client.file.readline(), b"HTTP/1.1 100 Continue\r\n\r\n")
            self.assertEqual(client.ask(body), (200, SCORED, "keep-alive"))

    def test_half_a_request_blocks_nobody(self) -> None:
        with mock.patch.object(service_server, "READ_SECONDS", 0.3), served(right) as (connect, said):
            for half in (b"POST /sc", post("4")[:-5]):
                with connect() as slow, connect() as other:
                    slow.send(half)
                    self.assertEqual(other.ask(post("4")), (200, SCORED, "keep-alive"))
                    error = {"error": "the request was not complete after 0.3 s"}
                    self.assertEqual(slow.answer(), (408, error, "close"))
                    self.assertTrue(slow.is_closed())
            self.assertEqual(said.getvalue().count(": 408: the request was not complete after 0.3 s\n"), 2)

    def test_a_client_that_does_not_read_blocks_nobody(self) -> None:
        def long(sample: Sample) -> Any:
            return {"score": 1.0, "note": "x" * (64 << 20)} if sample.response == "long" else 1.0

        server = service.server(long)
        with mock.patch.object(service_server, "WRITE_SECONDS", 0.3), Client(server.server_port) as deaf:
            with running(server) as said:
                deaf.send(post("long"))
                with Client(server.server_port) as other:
                    self.assertEqual(other.ask(post("4")), (200, SCORED, "keep-alive"))
            # The server has returned while the other client still has its connection.
        self.assertIn("the client did not read its answer in 0.3 s\n", said.getvalue())

    def test_an_idle_connection_is_closed(self) -> None:
        with mock.patch.object(service_server, "IDLE_SECONDS", 0.1), served(right) as (connect, said):
            with connect() as client:
                self.assertTrue(client.is_closed())
            self.assertEqual(said.getvalue(), "")

    def test_requests_that_are_too_large_or_wrong_are_refused(self) -> None:
        large = b"POST / HTTP/1.1\r\ncontent-length: 1001\r\n\r\n" + b"x" * 1001
        chunked = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
        chunks = b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\nx\r\n0\r\n\r\n"
        headers = b"GET / HTTP/1.1\r\nlong: " + b"x" * service_messages.LONGEST_HEAD + b"\r\n\r\n"
        with mock.patch.object(service_messages, "LARGEST_BODY", 1000), served(right) as (connect, said):
            for request, status, error in [
                (large, 413, "the body has 1001 bytes, and 1000 are allowed"),
                (chunked + chunks, 413, "the body has 1001 bytes, and 1000 are allowed"),
                (headers, 431, "the headers have more than 65536 bytes"),
                (b"hello\r\n\r\n", 400, "no request of HTTP/1.1: 'hello'"),
                (b"GET / HTTP/1.1\r\nbad\r\n\r\n", 400, "no header: 'bad'"),
                (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400, "the content-length is '-1'"),
                (chunked + b"-1\r\n", 400, "no chunk: b'-1\\r\\n'"),
                (b"PUT / HTTP/1.1\r\n\r\n", 501, "the method is PUT, and samples are sent with POST"),
            ]:
                with self.subTest(error=error), connect() as client:
                    self.assertEqual(client.ask(request), (status, {"error": error}, "close"))
                    self.assertTrue(client.is_closed())
                    self.assertIn(f": {status}: {error}\n", said.getvalue())

    def test_work_whose_client_has_gone_is_left_out(self) -> None:
        begun, goes_on = threading.Event(), threading.Event()
        judged: list[str] = []

        def slow(sample: Sample) -> float:
            judged.append(sample.response)
            begun.set()
            goes_on.wait(60)
            return 1.0

        with served(slow, threads=1) as (connect, said), connect() as first, connect() as other:
            first.send(post("first"))
            begun.wait(60)
            with connect() as gone:
                gone.send(post("gone"))
            # Answered after the server has seen the end of the other connection.
            for _ in range(20):
                other.ask(GET)
            goes_on.set()
            self.assertEqual(first.answer(), (200, SCORED, "keep-alive"))
            self.assertEqual(other.ask(post("other")), (200, SCORED, "keep-alive"))
            self.assertIn("the client gave up before its turn; 1 requests are judged at once\n", said.getvalue())
        self.assertEqual(judged, ["first", "other"])

    def test_a_function_that_exits_does_not_end_the_server(self) -> None:
        def leaves(sample: Sample) -> float:
            sys.exit(3)

        with served(leaves) as (connect, _), connect() as client:
            internal = {"verdicts": [{"internal": "SystemExit: 3"}]}
            for _ in range(2):
                self.assertEqual(client.ask(post("4")), (200, internal, "keep-alive"))


@contextlib.contextmanager
def command(code: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """`python -m gavel.service` with this file of rewards, and a client of it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rewards.py")
        file.write_text(code)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        arguments = [sys.executable, "-m", "gavel.service", f"{file}:score", "--port", "0", *options]
        pipe = subprocess.PIPE
        with subprocess.Popen(arguments, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stderr is not None
            port = int(process.stderr.readline().rpartition(":")[2])
            try:
                with Client(port) as client:
                    yield process, client
            finally:
                process.kill()


class Process(unittest.TestCase):
    def test_the_request_under_way_is_answered_before_the_end(self) -> None:
        code = "def score(sample):\n    print('begun', flush=True)\n    input()\n    return 1.0\n"
        for number in (signal.SIGTERM, signal.SIGINT):
            with command(code) as (process, client), Client(client.socket.getpeername()[1]) as idle:
                idle.ask(GET)
                client.send(post("4"))
                self.assertEqual(process.stdout.readline(), "begun\n")  # type: ignore[union-attr]
                process.send_signal(number)
                said = process.stderr.readline()  # type: ignore[union-attr]
                self.assertEqual(said, "gavel.service: ends after 1 requests, or at once with a second signal\n")
                self.assertTrue(idle.is_closed())
                print(file=process.stdin, flush=True)
                self.assertEqual(client.answer(), (200, SCORED, "close"))
                self.assertEqual(process.wait(60), 0)

    def test_workers_judge_in_their_main_threads_and_are_replaced(self) -> None:
        code = (
            "import os, signal\n"
            "def score(sample):\n"
            "    if sample.response == 'die':\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"  # Only a main thread may.
            "    return 1.0\n"
        )
        with command(code, "--workers", "1") as (process, client):
            self.assertEqual(client.ask(post("4")), (200, SCORED, "keep-alive"))
            died = {"error": "a worker process died (killed, out of memory, or crashed)"}
            self.assertEqual(client.ask(post("die")), (503, died, "keep-alive"))
            self.assertEqual(client.ask(post("4")), (200, SCORED, "keep-alive"))
            process.terminate()
            self.assertEqual(process.wait(60), 0)

    def test_a_worker_that_dies_takes_no_other_request_with_it(self) -> None:
        code = (
            "import os, signal, time\n"
            "from pathlib import Path\n"
            "def score(sample):\n"
            "    if sample.response == 'die':\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "    if sample.response == 'wait':\n"
            "        print('begun', flush=True)\n"
            "        while not Path(__file__).with_name('go').exists():\n"
            "            time.sleep(0.01)\n"
            "    return 1.0\n"
        )
        with command(code, "--workers", "2") as (process, client), Client(client.socket.getpeername()[1]) as other:
            client.send(post("wait"))
            self.assertEqual(process.stdout.readline(), "begun\n")  # type: ignore[union-attr]
            self.assertEqual(other.ask(post("die"))[0], 503)
            self.assertEqual(other.ask(post("4")), (200, SCORED, "keep-alive"))
            Path(process.args[3].rpartition(":")[0]).with_name("go").touch()  # type: ignore[index,union-attr]
            self.assertEqual(client.answer(), (200, SCORED, "keep-alive"))

    def test_a_pool_that_breaks_is_not_shut_down_in_its_own_thread(self) -> None:
        # Since Python 3.12, that thread has a lock then, which `shutdown` waits for.
        ended: list[threading.Thread] = []

        class Pool(ProcessPoolExecutor):
            def shutdown(self, *arguments: Any, **named: Any) -> None:
                ended.append(threading.current_thread())
                super().shutdown(*arguments, **named)

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rewards.py")
            file.write_text("import os\ndef score(sample):\n    os._exit(3)\n")
            with mock.patch.object(service_workers, "ProcessPoolExecutor", Pool):
                workers = service_workers.Workers(str(file), "score", False)
                for _ in range(2):
                    with self.assertRaises(BrokenExecutor):
                        workers.submit(service_workers.judge, post("4").partition(b"\r\n\r\n")[2]).result(60)
                workers.shutdown()
        self.assertGreaterEqual(len(ended), 2)
        self.assertEqual(set(ended), {threading.current_thread()})

    def test_a_number_of_workers_is_above_0(self) -> None:
        for number in ("0", "-1", "two"):
            arguments = [sys.executable, "-m", "gavel.service", f"{__file__}:right", f"--workers={number}"]
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
            done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
            self.assertIn(f"argument --workers: {number!r} is no whole number above 0", done.stderr)


class Limits(unittest.TestCase):
    def test_dropped_connections_are_warned_of(self) -> None:
        def counters(overflows: int, drops: int) -> str:
            names = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\n"
            return f"{names}TcpExt: 1 {overflows} {drops}\nIpExt: InNoRoutes\nIpExt: 0\n"

        async def watched(*then: str) -> list[str]:
            said: list[str] = []
            for text in then:
                watch = asyncio.create_task(service_limits.watch(said.append))
                await asyncio.sleep(0)
                file.write_text(text)
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            return said

        with tempfile.TemporaryDirectory() as folder:
            file, queue = Path(folder, "netstat"), Path(folder, "somaxconn")
            file.write_text(counters(7, 9))
            queue.write_text("128\n")
            with mock.patch.multiple(service_limits, COUNTERS=file, QUEUE=queue):
                said = asyncio.run(watched(counters(7, 9), counters(58, 62), "", "unknown"))
        [warning] = said
        self.assertTrue(warning.startswith("warning: 53 attempts to connect were dropped, 51 of them at a full queue;"))
        self.assertIn("holds 128 connections (net.core.somaxconn)", warning)


if __name__ == "__main__":
    unittest.main()
