"""Runs an async function without sockets or threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run"]

T = TypeVar("T")


class _Clock:
    """Waits for the next timer; there is nothing else to wait for."""

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("the async function waits for something that never happens")
        if timeout > 0:
            time.sleep(timeout)
        return []


class _Loop(asyncio.BaseEventLoop):
    """A loop of timers and callbacks. `asyncio.sleep`, `gather` and `wait_for`
    work. Work for a thread runs at once."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Clock()

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, as `asyncio.run` does."""
    loop = _Loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        try:
            loop.run_until_complete(_end_the_others())
        finally:
            loop.close()


async def _end_the_others() -> None:
    """Ends tasks that nothing waited for, since they may hold something open."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
