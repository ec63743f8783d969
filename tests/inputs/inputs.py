"""What an input is, and how it is given to the program."""
import http.server
import json
import multiprocessing
import os
import re
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, ContextManager, Iterator, NamedTuple

root = Path(__file__).resolve().parents[2]
KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
# Seconds of an input, bytes of an error, and bytes of a file that is written.
LIMIT, WORDS, DISK = 60, 64 * KB, GB
# A key that no output may have.
KEY = "sk-5c1e-never-shown-7fa2"
BEYOND = 10**20


class Input(NamedTuple):
    """A command in a folder with files. Their content is text, bytes, JSON, a link, a pipe or a function that makes it.
    An error must match the pattern `says`. In variables, `FOLDER` stands for the folder."""

    name: str
    files: dict[str, Any]
    command: list[Any]
    says: str
    variables: dict[str, str] = {}
    # The most bytes of a file that it writes, where more is an error and not the end of the process.
    file_bytes: int | None = None
    # The program that starts the command, which gets it as its arguments.
    through: list[Any] = []
    # What is true of the folder meanwhile.
    around: Callable[[Path], ContextManager[None]] | None = None
    # What is wrong with what the command has left there.
    after: Callable[[Path, "Outcome"], str | None] | None = None


class Request(NamedTuple):
    """A body for a path of a server, or bytes and pauses for its socket. An error must match the pattern `says`."""

    name: str
    path: str
    body: Any
    says: str


class Family(NamedTuple):
    """Inputs with a bound on memory, in MiB, and its reason. Requests are for a server with these files, to which the
    honest request is sent after each of them."""

    bound: int
    why: str
    inputs: Callable[["Place"], Iterator[Input | Request]]
    served: dict[str, Any] | None = None
    honest: tuple[str, Any] = ("", None)


class Place(NamedTuple):
    gavel: Path
    target: Path

    def plugin(self, name: str) -> str:
        return f"{self.target}/plugins/{name}.wasm"

    def guest(self, name: str) -> str:
        return f"{self.target}/guests/{name}.wasm"


class Outcome(NamedTuple):
    seconds: float
    mib: float
    status: int
    text: str
    # What ended it before its end.
    ended: str | None = None




class Link(NamedTuple):
    to: str


PIPE, ZERO = object(), Link("/dev/zero")


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = content() if callable(content) else content
    if isinstance(content, Link):
        path.symlink_to(content.to)
    elif content is PIPE:
        os.mkfifo(path)
    elif content is not None:
        path.write_bytes(encoded(content))


def encoded(content: Any) -> bytes:
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def deep(levels: int, inmost: str = "", start: str = "[", end: str = "]") -> str:
    return start * levels + inmost + end * levels


def nested(levels: int, around: Callable[[Any], Any], inmost: Any) -> Any:
    for _ in range(levels):
        inmost = around(inmost)
    return inmost


def of(text: Any, times: int) -> Callable[[], Any]:
    """Makes long content only where it is written."""
    return lambda: text * times


def apart(work: Callable[[], Any]) -> Any:
    """Calls a function in another process: `ru_maxrss` of a command begins with the memory of this one."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=lambda: there.send(work()))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(2 * LIMIT) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def memory(pid: int, field: str) -> float:
    """A size in `/proc/PID/status`, in MiB."""
    try:
        found = re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        found = None
    return int(found[1]) / KB if found else 0.0


def environment(folder: Path) -> dict[str, str]:
    """No hub but the one of the input, and no backtraces, whose symbols take memory."""
    hub = folder / "hub.txt"
    more = {"HF_HOME": str(folder / "hf"), "HF_ENDPOINT": hub.read_text() if hub.exists() else "http://127.0.0.1:9"}
    return {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"} | more | {"HOSTILE_KEY": KEY}


def limit_files(most: int | None) -> None:
    """Lets no file have more than `most` bytes, or 1 GiB. A write beyond it ends a process that does not handle it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most or DISK, most or DISK))


def run(command: list[Any], folder: Path, bound: int, each: Input = Input("", {}, [], "")) -> Outcome:
    """Runs the command of an input, and ends it at its time or at twice its memory."""
    begun, ended = time.monotonic(), None
    variables = {name: value.replace("FOLDER", str(folder)) for name, value in each.variables.items()}
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   env=environment(folder) | variables, start_new_session=True,
                                   preexec_fn=lambda: limit_files(each.file_bytes))
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.monotonic() - begun
        if pid:
            break
        if ended is None and (seconds > LIMIT or memory(process.pid, "VmRSS") > 2 * bound):
            ended = "hang" if seconds > LIMIT else "memory"
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    with open(folder / "output", "rb") as output:
        text = output.read(2 * WORDS).decode(errors="replace")
    # The second is the number of a write beyond the limit.
    if process.returncode == -signal.SIGXFSZ or each.file_bytes is None and "(os error 27)" in text:
        ended = "disk"
    return Outcome(seconds, usage.ru_maxrss / KB, process.returncode, text, ended)


class Server:
    def __init__(self, gavel: Path, folder: Path, honest: tuple[str, Any]) -> None:
        self.command = [gavel, "serve", "-m", "m", "--port", "0", "--cache-memory", "64MiB"]
        self.folder, self.honest, self.process = folder, honest, None

    def ask(self, request: Request) -> Outcome:
        if self.process is None or self.process.poll() is not None:
            self.start()
        pid, logged = self.process.pid, self.log.stat().st_size
        # From here on, the peak counts anew.
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        begun = time.monotonic()
        status, text = apart(lambda: send(self.address, request.path, request.body)) or (0, "")
        seconds = time.monotonic() - begun
        is_honest = (apart(lambda: send(self.address, *self.honest)) or (0, ""))[0] == 200
        mib = memory(pid, "VmHWM")
        text += self.log.read_bytes()[logged:][:2 * WORDS].decode(errors="replace")
        if self.process.poll() is not None:
            return Outcome(seconds, mib, self.process.returncode, text, "abort")
        if mib > 512:
            self.stop()
        return Outcome(seconds, mib, status, text, None if status and is_honest else "hang")

    def start(self) -> None:
        self.log = self.folder / "log"
        self.process = subprocess.Popen(
            self.command, cwd=self.folder, stdout=subprocess.PIPE, stderr=open(self.log, "wb"),
            env=environment(self.folder))
        found = re.search(r"http://([\d.]+):(\d+)", self.process.stdout.readline().decode())
        if found is None:
            raise SystemExit(f"the server does not start: {self.log.read_text()}")
        self.address = (found[1], int(found[2]))

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Talk(NamedTuple):
    """Bytes for a socket, and pauses in seconds between them."""

    parts: tuple[bytes | float, ...]
    is_answered: bool = True


def talk(*parts: bytes | float, is_answered: bool = True) -> Talk:
    return Talk(parts, is_answered)


def send(address: tuple[str, int], path: str, body: Any) -> tuple[int, str]:
    """The status and the text of the answer. A server may close the connection before it has read what it refuses."""
    body = body() if callable(body) else body
    try:
        if isinstance(body, Talk):
            return say(address, body)
        connection = http.client.HTTPConnection(*address, timeout=LIMIT)
        connection.request("POST", path, encoded(body))
        answer = connection.getresponse()
        return answer.status, answer.read(WORDS).decode(errors="replace")
    except TimeoutError:
        return 0, ""
    except OSError as error:
        return 400, f"closed: {error}"


def say(address: tuple[str, int], body: Talk) -> tuple[int, str]:
    with socket.create_connection(address, timeout=LIMIT) as connection:
        for part in body.parts:
            time.sleep(part) if isinstance(part, float) else connection.sendall(part)
        text = connection.recv(WORDS).decode(errors="replace") if body.is_answered else ""
    found = re.match(r"HTTP/1.1 (\d+)", text)
    return int(found[1]) if found else 400, text


def fault(found: Outcome, says: str, bound: int, is_request: bool) -> str | None:
    """What is bad about an outcome."""
    if found.ended:
        return found.ended
    is_ended = found.status == 500 if is_request else found.status not in (0, 1, 2)
    if is_ended or "panicked at" in found.text:
        return "abort"
    if found.mib > bound:
        return "memory"
    has_failed = found.status >= 400 if is_request else found.status != 0
    is_unclear = has_failed and (len(found.text) > WORDS or not re.search(says, found.text))
    return "words" if is_unclear or KEY in found.text else None
