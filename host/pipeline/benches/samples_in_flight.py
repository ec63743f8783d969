"""Threads and memory of a run with many samples in flight: the demo's model draws 1250 groups of 8, and a judge sleeps
for a minute over each sample, over all of them at once.

    cargo xtask demo && cargo xtask plugins
    python host/pipeline/benches/samples_in_flight.py

threads    of the whole process, the most that there were
memory     resident, the most that there was; `before` is that of a run with one group
"""
import json
import threading
import time
from pathlib import Path

import demo_runs

JUDGE = """
[[reward]]
name = "slow"
path = "target/guests/sleepy.wasm"
weight = 0.0
params = { milliseconds = MILLISECONDS }
grant = { clock = "real" }
limits = { timeout = "10m" }
"""


def status(process, name):
    """A number of /proc/PID/status; memory in KiB."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0


def measure(groups, milliseconds):
    most = dict(threads=0, memory=0)

    def watch(process):
        def look():
            while process.poll() is None:
                try:
                    most["threads"] = max(most["threads"], status(process, "Threads"))
                    most["memory"] = max(most["memory"], status(process, "VmRSS") / 1024)
                except (FileNotFoundError, ProcessLookupError):
                    return
                time.sleep(0.1)
        threading.Thread(target=look, daemon=True).start()

    settings = {
        "train.prompts_per_step": groups, "train.mini_batch_prompts": groups, "limits.memory": "2MiB",
        "resources.plugin_memory": "64GiB",
    }
    config = demo_runs.demo_config() + JUDGE.replace("MILLISECONDS", str(milliseconds))
    step = demo_runs.train(given, 0, config, settings, watch)[-1]
    names = {"scored": "outcome/slow/scored", "waited": "device_wait/reward/slow", "generate": "time/generate",
             "wall": "time/step", "p99": "reward/slow/latency_p99"}
    return dict(most, groups=groups, **{name: step.get(key) for name, key in names.items()})


given = demo_runs.arguments(demo_runs.parser(__doc__, steps=1))
found = [measure(groups, milliseconds) for groups, milliseconds in ((1, 1000), (1250, 60_000))]
if given.json:
    print(json.dumps(found, indent=2))
else:
    for run in found:
        print(f"{8 * run['groups']:6} samples: {run['threads']} threads, {run['memory']:.0f} MiB; "
              f"{run['scored']:.0f} scored, a step of {run['wall']:.1f} s, of which generation {run['generate']:.1f} s "
              f"and waiting for the judge {run['waited']:.1f} s")
