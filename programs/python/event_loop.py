"""An event loop for asyncio. Python's own waits for sockets, which are not there."""

import asyncio
import concurrent.futures
import time

from threads import SCHEDULER, leave


class Selector:
    """Waits for the next timer."""

    def select(self, timeout):
        if timeout is None and not SCHEDULER.waiting:
            leave("the event loop waits for what never comes")
        time.sleep(0 if timeout is None else max(0, timeout))
        return ()


class EventLoop(asyncio.base_events.BaseEventLoop):
    def __init__(self):
        super().__init__()
        self._selector = Selector()

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass


class Policy(asyncio.events._BaseDefaultEventLoopPolicy):
    _loop_factory = EventLoop

    def get_event_loop(self):
        """As before Python 3.14, there always is one."""
        if self._local._loop is None:
            self.set_event_loop(self.new_event_loop())
        return self._local._loop


def install():
    for module in (asyncio, asyncio.events, asyncio.unix_events):
        for name in ("SelectorEventLoop", "_UnixSelectorEventLoop", "EventLoop"):
            if hasattr(module, name):
                setattr(module, name, EventLoop)
    asyncio.runners.events._set_event_loop_policy(Policy())
