"""How calls would scale to more cores than this machine has: a simulation of threads of one process whose calls replace
pages that they have read. Each such page interrupts every other core that runs a thread of the process. The core that
replaces the page waits until all others have answered.

    python host/plugin/benches/many_cores.py
    python host/plugin/benches/many_cores.py --work 10 --pages 3 --cores 1 2 4 8 16

work       microseconds of a call in one thread, with its page faults: `slow_calls` prints it
pages      pages of a call that are read before they are written: `perf stat -e tlb:tlb_flush` counts them
ask        microseconds in which a core asks the others; `touched_pages` prints what a page costs with two threads
interrupt  microseconds that an interrupt takes from each other core

Prints calls a second of threads of one process and of as many processes, which do not interrupt each other.
"""
import argparse
import heapq
import json
import random

SECONDS = 2.0


def simulate(cores, work, pages, ask, interrupt):
    """Calls a second of `cores` threads that never wait for calls."""
    random.seed(cores)
    # Between two such pages, and after the last.
    part = work / (pages + 1)
    parts, calls, now = [0] * cores, 0, 0.0
    # The end of the part that each core computes. Interrupts put it off.
    ends = [part * random.random() for _ in range(cores)]
    queue = [(end, core) for core, end in enumerate(ends)]
    heapq.heapify(queue)
    while now < SECONDS * 1e6:
        now, core = heapq.heappop(queue)
        if now < ends[core]:
            heapq.heappush(queue, (ends[core], core))
            continue
        parts[core] += 1
        if parts[core] > pages:
            parts[core], calls = 0, calls + 1
            ends[core] = now + part
        else:
            others = [other for other in range(cores) if other != core]
            for other in others:
                ends[other] += interrupt
            ends[core] = now + part + (ask + interrupt if others else 0.0)
        heapq.heappush(queue, (ends[core], core))
    return calls / SECONDS


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", type=float, default=1800.0)
parser.add_argument("--pages", type=int, default=107)
parser.add_argument("--ask", type=float, default=3.0)
parser.add_argument("--interrupt", type=float, default=2.5)
parser.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 8, 16])
given = parser.parse_args()
for cores in given.cores:
    threads = simulate(cores, given.work, given.pages, given.ask, given.interrupt)
    print(json.dumps(dict(cores=cores, threads=round(threads), processes=round(cores * 1e6 / given.work))))
