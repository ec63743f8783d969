"""Gives the program inputs that strangers may write: schemas of tools, bodies of requests, grammars of responses,
checkpoints, datasets, folders of shared limits, answers of services and hubs, recordings and configurations; and disks
that are full, read-only, bound by a quota or gone midway. They follow from a fixed seed.

    cargo build --release && cargo xtask plugins
    python tests/inputs/search.py                                    # all, in some 25 minutes
    python tests/inputs/search.py --only templates lines --verbose   # two families, and each output

Needs Python 3.11 on Linux and nothing else. Each command is a process of its own, and so is each client of a server,
which is started again once it has taken more than 512 MiB. An input is bad for one of these:

hang     the command takes more than 60 s, or the server has not answered the input, or an honest request, after 60 s
abort    a signal or a panic ends the process, a panic is printed, or a server answers with 500
memory   the peak of its resident memory is above the bound of its family (`ru_maxrss`, or `VmHWM` of a server)
disk     it writes a file of more than 1 GiB
words    an error does not name what is wrong (a file, a field, a plugin), has more than 64 KiB, or shows a key

An input of the family `disks` is also bad for what its command leaves: half a file under the name of a whole one, a
checkpoint from which the run does not continue, or other weights at the end than on a disk with room. The family mounts
disks of some kilobytes, in a namespace of its own, as root or where users may have one, and says so where it cannot.
Quotas need root and btrfs-progs.

The table has the inputs of each family, the seconds of all and of the longest, the highest peak and its bound, and the
names of bad inputs. The exit status is 1 if there are any. The bounds:
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Iterator

from bodies import CLASSIFIER, PLAIN, ask, bodies, classified
from checkpoints import adapter_inputs, checkpoint, template_inputs, tokenizer_inputs, weight_inputs
from datasets import learning_inputs, line_inputs, parquet_inputs
from disks import disk_inputs
from folders import configuration_inputs, limiter_inputs, recording_inputs
from grammars import grammars
from inputs import Family, Outcome, Place, Request, Server, apart, fault, root, run, write
from odd_files import odd_inputs
from schemas import tool_inputs
from services import hub_inputs, judge_inputs, service_inputs
from tool_servers import mcp_inputs

VALUES = "a value of a body takes 700 bytes as a variable of the template, and 2,097,152 are allowed"
FAMILIES = {
    "files": Family(512, "a file in an odd form has nothing that takes memory", odd_inputs),
    "tools": Family(512, "a call has 256 MiB, and the schemas of a tool 32 MiB of patterns", tool_inputs),
    "servers": Family(512, "a message has 16 MiB, and so has the list of functions", mcp_inputs),
    "templates": Family(2560, "the texts of a template have 2 GiB in all", template_inputs),
    "tokenizers": Family(1024, "4 MiB of added tokens take eighty times as much", tokenizer_inputs),
    "weights": Family(1536, "weights may have 1 GiB more than their files", weight_inputs),
    "adapters": Family(1536, "weights may have 1 GiB more than their files", adapter_inputs),
    "bodies": Family(1792, VALUES, bodies, checkpoint(), (PLAIN, ask())),
    "grammars": Family(1024, "four grammars are compiled at once", grammars, checkpoint(), (PLAIN, ask())),
    "classifier": Family(1792, VALUES, classified, CLASSIFIER, ("/classify", {"input": "a"})),
    "parquet": Family(1536, "pages that are read at once have 1 GiB", parquet_inputs),
    "lines": Family(512, "a row has 64 MiB, which are in memory some times", line_inputs),
    "learning": Family(512, "a row has 64 MiB, and its text 16 MiB in the template", learning_inputs),
    "services": Family(512, "a call has 256 MiB", service_inputs),
    "judges": Family(512, "an answer has 16 MiB, and a call 256 MiB", judge_inputs),
    "hubs": Family(512, "a list of files has some megabytes", hub_inputs),
    "limiters": Family(256, "a state has 1 MiB", limiter_inputs),
    "recordings": Family(512, "a line has some megabytes", recording_inputs),
    "configuration": Family(512, "a configuration has some kilobytes", configuration_inputs),
    "disks": Family(1024, "a small run has little beside libtorch", disk_inputs),
}


def arguments() -> argparse.Namespace:
    bounds = "".join(f"\n{name:14}{family.bound:5} MiB: {family.why}" for name, family in FAMILIES.items())
    parser = argparse.ArgumentParser(description=__doc__ + bounds, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gavel", type=Path, default=root / "target/release/gavel")
    parser.add_argument("--target", type=Path, default=root / "target", help="the folder with plugins/ and guests/")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--matching", default="", metavar="PATTERN", help="only inputs whose names match")
    parser.add_argument("--verbose", action="store_true", help="print each outcome, and not only the bad ones")
    return parser.parse_args()


def outcomes(place: Place, family: Family, folder: Path, pattern: str) -> Iterator[tuple[str, Outcome, str | None]]:
    server = Server(place.gavel, folder, family.honest) if family.served else None
    for path, content in (family.served or {}).items():
        write(folder / path, content)
    try:
        for number, each in enumerate(family.inputs(place)):
            if not re.search(pattern, each.name):
                continue
            if isinstance(each, Request):
                found = server.ask(each)
            else:
                own = folder / str(number)
                own.mkdir(parents=True)
                apart(lambda: [write(own / path, content) for path, content in each.files.items()])
                with each.around(own) if each.around else nullcontext():
                    found = run([*each.through, place.gavel, *each.command], own, family.bound, each)
                    left = each.after(own, found) if each.after else None
                shutil.rmtree(own)
                if left:
                    yield each.name, found, left
                    continue
            yield each.name, found, fault(found, each.says, family.bound, server is not None)
    finally:
        if server:
            server.stop()


def search(given: argparse.Namespace) -> int:
    """Prints the table, and gives the number of bad inputs."""
    place, bad = Place(given.gavel.resolve(), given.target.resolve()), 0
    plugins = map(place.plugin, ("exact-answer", "service", "llm-judge"))
    for component in (place.guest("toolbox"), place.guest("sums"), *plugins):
        # Compiled now, so that no input has the memory of the compiler.
        subprocess.run([place.gavel, "plugin", "inspect", component], check=True, stdout=subprocess.DEVNULL)
    table = [f"{'':14}{'inputs':>7}{'seconds':>9}{'longest':>9}{'MiB':>7}{'bound':>7}  bad"]
    with tempfile.TemporaryDirectory() as temporary:
        for name in given.only:
            family, begun, found, names = FAMILIES[name], time.monotonic(), [], []
            for each, outcome, wrong in outcomes(place, family, Path(temporary, name), given.matching):
                found.append(outcome)
                names += [f"{each} ({wrong})"] if wrong else []
                if wrong or given.verbose:
                    numbers = f"{outcome.seconds:.1f} s, {outcome.mib:.0f} MiB, status {outcome.status}"
                    print(f"{name}: {each}: {wrong or 'good'}: {numbers}\n{outcome.text[:600].rstrip()}", flush=True)
            seconds, mib = (max((outcome[at] for outcome in found), default=0) for at in (0, 1))
            numbers = f"{len(found):7}{time.monotonic() - begun:9.0f}{seconds:9.1f}{mib:7.0f}{family.bound:7}"
            table.append(f"{name:14}{numbers}  {', '.join(names)}")
            bad += len(names)
    print("\n".join(table))
    return bad


if __name__ == "__main__":
    sys.exit(search(arguments()) > 0)
