"""`gavel.programs` in a component: over the host's `exec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from componentize_py_types import Err
from gavel_world.imports import exec as host

from . import programs
from .verdict import Unavailable

__all__ = ["run"]


def run(jobs: Sequence[programs.Job]) -> list[programs.Answer]:
    """Runs all jobs and waits for the last."""
    return [_answer(answer) for answer in host.run([_job(job) for job in jobs])]


def _job(job: programs.Job) -> Any:
    stdin = job.stdin.encode() if isinstance(job.stdin, str) else bytes(job.stdin)
    return host.Job(job.program, list(job.args), stdin, job.cpu_ms, job.memory)


def _answer(answer: Any) -> programs.Answer:
    value = answer.value
    if isinstance(answer, Err):
        kind = Unavailable if isinstance(value, host.Error_Unavailable) else programs.InvalidRequest
        return kind(value.value)
    return programs.Output(value.stdout, value.stderr, _ending(value.ending), value.cpu_us)


def _ending(ending: Any) -> programs.Ending:
    if isinstance(ending, host.Ending_Exited):
        return programs.Exited(ending.value)
    if isinstance(ending, host.Ending_OutOfBudget):
        return programs.OutOfBudget(ending.value)
    return programs.Trapped(ending.value)
