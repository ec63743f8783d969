"""What the threads of a run use in each of its steps, for the scripts beside this file."""
import threading
import time
from pathlib import Path

# Other threads, such as the one that interrupts guests by the clock, are left out.
THREADS = {"gavel-device": "device", "gavel-plugin": "fast lane", "gavel-slow": "slow lane"}
# Keeps the books. It has the name of the program.
FIRST = "first"
SECONDS = 0.005


class Watch:
    """Follows a run whose folder appears in `folder`. A step lasts from its line of metrics to the next one, so that a
    checkpoint counts towards the step after it."""

    def __init__(self, process, folder):
        self.process, self.folder = process, folder
        self.seen, self.marks, self.memory = {}, [], 0
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        lines = 0
        while self.process.poll() is None:
            self.look()
            metrics = next(self.folder.glob("*/metrics.jsonl"), None)
            written = metrics.read_bytes().count(b"\n") if metrics else 0
            self.marks += [self.sums()] * (written - lines)
            lines = written
            time.sleep(SECONDS)
        self.marks.append(self.sums())

    def look(self):
        """Notes the processor time and the page faults of each thread, in nanoseconds and in pages."""
        for task in Path(f"/proc/{self.process.pid}/task").glob("*"):
            try:
                nanoseconds = int((task / "schedstat").read_text().split()[0])
                name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                thread = FIRST if int(task.name) == self.process.pid else THREADS.get(name)
                self.seen[task.name] = thread, nanoseconds, int(fields.split()[7])
            except (FileNotFoundError, ProcessLookupError, IndexError):
                # It has ended, and what it used is known.
                continue

    def sums(self):
        sums = {thread: [0, 0] for thread in (FIRST, *THREADS.values())}
        for thread, nanoseconds, faults in self.seen.values():
            if of := sums.get(thread):
                of[0] += nanoseconds
                of[1] += faults
        return sums

    def steps(self):
        """For each step, by thread: seconds of processor time, and page faults."""
        self.thread.join()
        pairs = zip(self.marks[:-2], self.marks[1:-1])
        return [{name: [(now[0] - then[0]) / 1e9, now[1] - then[1]]
                 for (name, then), now in zip(before.items(), after.values())} for before, after in pairs]
