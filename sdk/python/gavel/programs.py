"""Running programs, for code that the policy wrote.

The run's configuration names programs (`[exec.python]`) and grants them to a
plugin; `plugin.toml` declares the import (`imports = ["exec"]`).

    from gavel import programs

    output = programs.run("python", json.dumps({"code": code}), stdin="2 2", cpu_ms=1000)
    passed = output.ok and output.text.strip() == "4"
    outputs = programs.run_all([programs.Job("python", [job], stdin) for stdin in inputs])    # several at once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Union

from .refusal import InvalidRequest
from .verdict import Unavailable

__all__ = ["Ending", "Exited", "InvalidRequest", "Job", "OutOfBudget", "Output", "Trapped", "run", "run_all"]


@dataclass(frozen=True)
class Exited:
    """The program ended by itself."""

    status: int


@dataclass(frozen=True)
class OutOfBudget:
    """The program used up a budget."""

    which: str
    """`cpu`, `memory`, `deadline`, `stack`, `output`, …"""


@dataclass(frozen=True)
class Trapped:
    """The program trapped."""

    reason: str


Ending = Union[Exited, OutOfBudget, Trapped]


@dataclass
class Job:
    """A run of a program: a fresh child that sees only its arguments and its
    input."""

    program: str
    """Its name in the configuration."""
    args: Sequence[str] = ()
    stdin: bytes | str = b""
    """Its standard input. A text is sent in UTF-8."""
    cpu_ms: int | None = None
    """A limit of processor time, in milliseconds, if it is lower than that of
    the configuration."""
    memory: int | None = None
    """A limit of memory, in bytes, if it is lower than that of the
    configuration."""


@dataclass
class Output:
    """The result of a job."""

    stdout: bytes = b""
    """What it printed until it ended."""
    stderr: bytes = b""
    ending: Ending = Exited(0)
    cpu_us: int = 0
    """Processor time, in microseconds."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with the status 0."""
        return self.ending == Exited(0)

    @property
    def text(self) -> str:
        """`stdout` as text; what is not UTF-8 becomes U+FFFD."""
        return self.stdout.decode("utf-8", "replace")


Answer = Union[Output, InvalidRequest, Unavailable]


def run(
    program: str, *args: str, stdin: bytes | str = b"", cpu_ms: int | None = None, memory: int | None = None
) -> Output:
    """Runs a program and waits for its end.

    A program that loops, crashes or asks for too much is not an error:
    `Output.ending` has it. Raises `InvalidRequest` if the program is not
    granted, and `gavel.Unavailable` if the host cannot run it.
    """
    return run_all([Job(program, args, stdin, cpu_ms, memory)])[0]


def run_all(jobs: Sequence[Job]) -> list[Output]:
    """Runs all jobs, several at once, and waits for the last. Returns one output
    for each job, in order. Raises the first error, as `run` does."""
    if _host is None:
        raise RuntimeError(
            'no programs here: in a component, add imports = ["exec"] to plugin.toml; '
            "in a test, use gavel.testing.scripted_programs"
        )
    answers = _host(jobs)
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if isinstance(answer, Output)]


_host: Callable[[Sequence[Job]], list[Answer]] | None = None
"""Set by the component, and by `gavel.testing`."""
