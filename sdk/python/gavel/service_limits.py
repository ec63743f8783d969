"""What the system limits: open files, and the queue of connections that wait to
be accepted. Connections that find the queue full are dropped, and only the
system's counters tell."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["BACKLOG", "raise_open_files", "watch"]

# What the server asks for; the system gives at most net.core.somaxconn.
BACKLOG = 65_535
SECONDS_BETWEEN_LOOKS = 10.0
COUNTERS = Path("/proc/net/netstat")
QUEUE = Path("/proc/sys/net/core/somaxconn")


def raise_open_files() -> None:
    """Allows as many open files, and connections, as the system lets a process
    have."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        except (OSError, ValueError):
            pass  # macOS has a lower limit of its own.


async def watch(say: Callable[[str], None]) -> None:
    """Warns of connections that were dropped, now and then and when it is
    cancelled."""
    before = _dropped()
    while before is not None:
        try:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            now = _dropped() or before
            if now != before:
                say(_warning(before, now))
            before = now


def _dropped() -> tuple[int, int] | None:
    """How many attempts to connect to this machine found a full queue, and how
    many were dropped for any reason. None where the system does not tell."""
    try:
        lines = [line.split() for line in COUNTERS.read_text().splitlines() if line.startswith("TcpExt:")]
        names, values = lines
        counters = dict(zip(names, values))
        return int(counters["ListenOverflows"]), int(counters["ListenDrops"])
    except (OSError, ValueError, KeyError):
        return None


def _warning(before: tuple[int, int], now: tuple[int, int]) -> str:
    full, dropped = now[0] - before[0], now[1] - before[1]
    return (
        f"warning: {dropped} attempts to connect were dropped, {full} of them at a full queue; these clients wait "
        f"or time out. The queue of a server holds {_queue()} connections (net.core.somaxconn), and all servers of "
        f"this machine are counted. Raise it (`sysctl -w net.core.somaxconn={BACKLOG}`) and restart, or send fewer "
        "requests at once"
    )


def _queue() -> str:
    try:
        return QUEUE.read_text().strip()
    except OSError:
        return "an unknown number of"
