"""Commands whose files, caches and temporary files are on disks without room, read-only, with quotas, or gone midway."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

from bodies import PLAIN as PATH
from bodies import ask
from checkpoints import ADAPTER, QUERY_SIZES, checkpoint, tensors
from inputs import KB, Input, Outcome, Place, environment, lines, send, write
from mounts import Disk, make_room, why_no_mounts, why_no_quotas
from services import below, outside, reply, verdict, http_answer
from tool_servers import MODEL

ROWS = lines(*({"prompt": f"{at}+2?", "answer": f"{at + 2}", "response": f"Answer: {at}"} for at in range(4)))
MANY = lines(*({"response": f"Answer: {at}", "answer": f"{at}"} for at in range(400)))
LEARNING = MODEL + """
[data]
train = "rows.jsonl"
[checkpoint]
every = 1
[log]
dir = "disk/runs"
name = "r"
tensorboard = false
[train]
steps = 3
learning_rate = 1e-3
"""
TRAIN = LEARNING.replace("[checkpoint]", 'validation = "rows.jsonl"\n[checkpoint]') + """prompts_per_step = 2
[rollout]
max_tokens = 8
group_size = 2
[[reward]]
name = "letter"
path = "FORMAT"
params = { pattern = '(?s).*[a-z].*' }
"""
SFT = LEARNING + "batch_size = 2\n"
# A disk that takes nothing is named with what to do about it.
HINT = r"(?s)disk.*\nhint: "
TEMPORARY = r"(?s)disk.*\nhint: set the variable TMPDIR"
QUOTA = r"(?s)disk.*\nhint: the quota is used up"
RUN = "disk/runs/r"
# A folder that is there.
PLAIN = Disk(gone_after="")
After = Callable[[Path, Outcome], str | None]


def gavel(place: Place, folder: Path, *command: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([place.gavel, *command], cwd=folder, env=environment(folder), capture_output=True, text=True,
                          errors="replace")


def pages(content: bytes) -> int:
    """The bytes that a file takes on a disk."""
    return -len(content) // (4 * KB) * (-4 * KB)


def weights(run: Path, step: int) -> bytes | None:
    path = run / f"checkpoints/step-{step:06}/model.safetensors"
    return path.read_bytes() if path.is_file() else None


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Learning:
    """A run that learns, and what it becomes on a disk with room."""

    def __init__(self, place: Place, kind: str, config: str) -> None:
        self.place, self.command = place, [kind, "-c", "run.toml"]
        self.files = {"run.toml": config.replace("FORMAT", place.plugin("format")), "rows.jsonl": ROWS}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for path, content in self.files.items():
                write(folder / path, content)
            # Two steps of it, from which others continue.
            self.ran(folder, "--set", "train.steps=2")
            self.begun = {f"runs/r/{path}": content for path, content in files(folder / RUN).items()}
            self.ran(folder, "--resume")
            self.whole = weights(folder / RUN, 3)
            assert self.whole, "the run has no third checkpoint"

    def ran(self, folder: Path, *more: str) -> None:
        done = gavel(self.place, folder, *self.command, *more)
        if done.returncode != 0:
            raise SystemExit(f"a run that should end: {done.stderr}")

    def after(self, folder: Path, found: Outcome) -> str | None:
        """Whether what the run has left is whole, and the same run where there is room."""
        is_gone = (folder / "disk.gone").exists()
        checkpoints = folder / RUN / "checkpoints"
        is_bound = (folder / "disk.image").exists() or any((folder / "disk").glob("filler*"))
        if not is_gone and any(checkpoints.glob("*.partial")) and is_bound:
            return "a partial checkpoint is left"
        # Before a folder that was gone is back: the run may have made it anew and ended in it.
        ended = weights(folder / RUN, 3)
        make_room(folder)
        kept = any(path for path in checkpoints.glob("step-*") if path.suffix != ".partial")
        if found.status != 0:
            if not kept:
                shutil.rmtree(folder / RUN, ignore_errors=True)
            done = gavel(self.place, folder, *self.command, *(["--resume"] if kept else []))
            if done.returncode != 0:
                return f"it does not continue: {done.stderr[-900:]}"
            ended = weights(folder / RUN, 3)
        return None if ended == self.whole else "other weights than on a disk with room"

    def input(self, name: str, disk: Disk, says: str = HINT, *more: str, **changes: Any) -> Input:
        return Input(f"{self.command[0]}: {name}", self.files, [*self.command, *more], says, around=disk.around,
                     after=self.after, **changes)

    def inputs(self, is_long: bool) -> Iterator[Input]:
        # What a run has beside its checkpoints, such as the components of its plugins, and what one of these takes.
        one = sum(pages(content) for path, content in self.begun.items() if "/step-000002/" in path)
        base = sum(pages(content) for path, content in self.begun.items() if "/checkpoints/" not in path)
        rooms = {"nothing": 0, "half of a component": base // 2}
        shares = (5, 20, 35, 50, 65, 80, 95, 110, 150, 190, 230) if is_long else (50, 120)
        rooms |= {f"{share} % of a checkpoint": base + one * share // 100 for share in shares}
        for name, room in rooms.items():
            yield self.input(f"a new run with room for {name}", Disk(room=room // (4 * KB) * (4 * KB)))
        for share in (0, 50, 90) if is_long else (30,):
            yield self.input(f"a third step with room for {share} % of a checkpoint",
                             Disk(self.begun, room=one * share // 100 // (4 * KB) * (4 * KB)), HINT, "--resume")
        for names in (0, 4, 9, 14, 18, 22) if is_long else (12,):
            yield self.input(f"a new run with room for {names} names", Disk(names=names))
        for share in (0, 20, 50, 80, 110, 150, 190, 250) if is_long else (50, 120):
            yield self.input(f"a new run with a quota of {share} % of a checkpoint",
                             Disk(quota=base + one * share // 100), QUOTA)
        yield self.input("a new run on a read-only disk", Disk(is_read_only=True))
        yield self.input("a third step on a read-only disk", Disk(self.begun, is_read_only=True), HINT, "--resume")
        for pattern in ("runs/r/config.toml", "runs/r/checkpoints/step-000001", "runs/r/checkpoints/step-000002"):
            yield self.input(f"a folder that is gone after {pattern[7:]}", Disk(gone_after=pattern), "disk")
        for size in (4 * KB, 20 * KB, 40 * KB) if is_long else (20 * KB,):
            yield self.input(f"files of at most {size // KB} KiB", PLAIN, HINT, file_bytes=size)


def output(path: str, rows: int = 0, old: str = "") -> After:
    """An output is whole or is not there; what was there before stays, and there is nothing beside it."""

    def after(folder: Path, found: Outcome) -> str | None:
        out = folder / path
        beside = [other.name for other in out.parent.iterdir() if "partial" in other.name] if out.parent.exists() else []
        if beside:
            return f"there is {beside}"
        text = out.read_text(errors="replace") if out.is_file() else ""
        if found.status == 0:
            return None if not rows or len(text.splitlines()) == rows else "the output is not whole"
        return None if text == old else "half an output, or another one than before"

    return after


def succeeds(_: Path, found: Outcome) -> str | None:
    return None if found.status == 0 else f"exit status {found.status}"


def fails(_: Path, found: Outcome) -> str | None:
    return None if found.status != 0 else "success without the file"


def scoring(place: Place) -> Iterator[Input]:
    """Outputs of `gavel score`."""
    command = ["score", "--plugin", "answer=" + place.plugin("exact-answer"), "--data", "rows.jsonl", "--out"]
    for room in (0, 4 * KB, 40 * KB):
        for name, old in (("a new output", ""), ("an output again", "old\n")):
            disk = Disk({"out.jsonl": old} if old else {}, room=room)
            yield Input(f"score: {name} with {room // KB} KiB", {"rows.jsonl": MANY}, [*command, "disk/out.jsonl"], HINT,
                        around=disk.around, after=output("disk/out.jsonl", 400, old))
    for name, old in (("a new output", ""), ("an output again", "old\n")):
        disk = Disk({"out.jsonl": old} if old else {}, quota=40 * KB)
        yield Input(f"score: {name} with a quota", {"rows.jsonl": MANY}, [*command, "disk/out.jsonl"], QUOTA,
                    around=disk.around, after=output("disk/out.jsonl", 400, old))
    yield Input("score: read-only", {"rows.jsonl": MANY}, [*command, "disk/out.jsonl"], HINT,
                around=Disk(is_read_only=True).around, after=output("disk/out.jsonl", 400))
    yield Input("score: no names", {"rows.jsonl": MANY}, [*command, "disk/out.jsonl"], HINT,
                around=Disk(names=0).around, after=output("disk/out.jsonl", 400))
    yield Input("score: files of at most 4 KiB", {"rows.jsonl": MANY}, [*command, "disk/out.jsonl"], HINT,
                around=PLAIN.around, after=output("disk/out.jsonl", 400), file_bytes=4 * KB)
    yield Input("score: a full device", {"rows.jsonl": MANY}, [*command, "/dev/full"], r"(?s)/dev/full.*\nhint: ",
                after=lambda *_: None if Path("/dev/full").is_char_device() else "the device is gone")
    yield Input("score: no folder", {"rows.jsonl": MANY}, [*command, "disk/out.jsonl"], "disk", after=fails)
    yield Input("score: rows without the folder of temporary files", {"rows.jsonl": MANY}, [*command, "out.jsonl"],
                "disk", variables={"TMPDIR": "FOLDER/disk"}, after=succeeds)


def recording(place: Place) -> Iterator[Input]:
    """Recordings of `gavel score`, with answers of a service on the tape."""
    component = Path(place.plugin("service")).stat().st_size // (4 * KB) * (4 * KB)
    rooms = (0, component // 2, component + 12 * KB, component + 24 * KB, component + 40 * KB)
    ways = {f"with {room // KB} KiB": Disk(room=room) for room in rooms}
    ways |= {f"with {names} names": Disk(names=names) for names in (3, 9, 30)}
    ways |= {f"with a quota of {quota // KB} KiB": Disk(quota=quota) for quota in (0, component // 2, component + 40 * KB)}
    ways |= {"read-only": Disk(is_read_only=True), "gone midway": Disk(gone_after="r/tape/answers/*/*")}

    def after(folder: Path, found: Outcome) -> str | None:
        make_room(folder)
        done = gavel(place, folder, "replay", "disk/r", "--allow-grants")
        if found.status == 0 and done.returncode != 0:
            return f"a recording that cannot be replayed: {done.stderr[-900:]}"
        return "a panic" if "panicked at" in done.stderr else None

    with outside({name: verdict() for name in ways}) as address:
        for name, disk in ways.items():
            params = json.dumps({"url": below(address, name), "retries": 0})
            grant = f'service={{ http = ["{address}"], clock = "real" }}'
            command = ["score", "--plugin", place.plugin("service"), "--params", params, "--grant", grant]
            command += [ "--data", "rows.jsonl", "--out", "out.jsonl", "--record", "disk/r"]
            says = HINT if disk.is_mounted() else "disk"
            yield Input(f"record: {name}", {"rows.jsonl": ROWS * 9}, command, says, around=disk.around, after=after)


def caches(place: Place) -> Iterator[Input]:
    """A cache that cannot be used costs time alone; without a folder for temporary files, nothing is compiled."""
    component = place.plugin("exact-answer")
    command = ["plugin", "inspect", component]
    for name, disk in (("full", Disk(room=0)), ("with 40 KiB", Disk(room=40 * KB)), ("no names", Disk(names=0)),
                       ("a quota", Disk(quota=40 * KB)), ("read-only", Disk(is_read_only=True)), ("gone", Disk(gone_after="components/*"))):
        yield Input(f"a cache of components: {name}", {}, command, "disk", around=disk.around, after=succeeds,
                    variables={"GAVEL_CACHE_DIR": "FOLDER/disk"})
    for name, disk in (("full", Disk(room=0)), ("with 40 KiB", Disk(room=40 * KB)), ("with 400 KiB", Disk(room=400 * KB)),
                       ("no names", Disk(names=0)), ("a quota", Disk(quota=400 * KB)),
                       ("read-only", Disk(is_read_only=True))):
        yield Input(f"temporary files: {name}", {}, command, TEMPORARY, around=disk.around, after=fails,
                    variables={"GAVEL_CACHE_DIR": "FOLDER/cache", "TMPDIR": "FOLDER/disk"})
    yield Input("temporary files: small files", {}, command, TEMPORARY, after=fails, file_bytes=40 * KB,
                variables={"GAVEL_CACHE_DIR": "FOLDER/cache", "TMPDIR": "FOLDER"})
    judged = ["score", "--plugin", place.plugin("llm-judge"), "--params", '{"mode": "single", "retries": 0}']
    judged += ["--grant", 'llm-judge={ chat = ["judge"] }', "--data", "rows.jsonl", "--out", "out.jsonl"]
    disks = {"full": Disk(room=0), "read-only": Disk(is_read_only=True), "a quota": Disk(quota=0)}
    with outside({name: lambda _: http_answer(reply()) for name in disks}) as address:
        for name, disk in disks.items():
            chat = f'base_url = "{below(address, name)}", model = "m", cache = {{ folder = "disk/answers" }}'
            yield Input(f"a cache of answers: {name}", {"rows.jsonl": ROWS}, [*judged, "--chat", f"judge={{ {chat} }}"],
                        HINT, around=disk.around, after=output("out.jsonl", 4))
            limits = 'requests_per_second = 100, share = "disk/turns"'
            yield Input(f"shared limits: {name}", {"rows.jsonl": ROWS},
                        [*judged, "--chat", f'judge={{ base_url = "{below(address, name)}", model = "m", limit = "t" }}',
                         "--limiter", f"t={{ {limits} }}"], HINT, around=disk.around, after=output("out.jsonl", 4))


def models(place: Place, learning: Learning) -> Iterator[Input]:
    """Models and what is written of them."""
    full, read_only, quota = Disk(room=0), Disk(is_read_only=True), Disk(quota=0)
    evaluate = ["eval", *learning.command[1:], "--out"]
    for name in ("a.jsonl", "a.parquet"):
        for kind, disk in (("full", full), ("a quota", quota), ("read-only", read_only)):
            yield Input(f"eval: {name}, {kind}", learning.files, [*evaluate, f"disk/{name}"], rf"(?s){name}.*\nhint: ",
                        around=disk.around, after=output(f"disk/{name}"))
    yield Input("eval: a full device", learning.files, [*evaluate, "/dev/full"], r"(?s)/dev/full.*\nhint: ",
                after=lambda *_: None if Path("/dev/full").is_char_device() else "the device is gone")
    model = {path.removeprefix("m/"): content for path, content in checkpoint().items()}
    ask = ["generate", "-m", "disk", "--chat", "--prompt", "a", "--max-tokens", "2"]
    yield Input("generate: a read-only model", {}, ask, "disk", around=read_only._replace(files=model).around,
                after=succeeds)
    through = [sys.executable, Path(__file__).resolve()]
    serve = ["serve", "-m", "disk", "--port", "0", "--cache-memory", "64MiB"]
    for name, disk in (("read-only", read_only), ("full", full)):
        yield Input(f"serve: a {name} disk for all", {}, serve, "disk", around=disk._replace(files=model).around,
                    after=succeeds, through=through, variables={"GAVEL_CACHE_DIR": "FOLDER/disk", "TMPDIR": "FOLDER/disk"})
    yield Input("replay: a read-only run", {}, ["replay", RUN], "disk",
                around=Disk(learning.begun, is_read_only=True).around, after=succeeds)
    adapter = {**checkpoint(), "a/adapter_config.json": ADAPTER, "a/adapter_model.safetensors": lambda: tensors(QUERY_SIZES)}
    for name, disk in (("full", full), ("with 8 KiB", Disk(room=8 * KB)), ("a quota", Disk(quota=8 * KB)),
                       ("read-only", read_only)):
        yield Input(f"merge: {name}", adapter, ["merge", "-m", "a", "-o", "disk/merged"], HINT, around=disk.around,
                    after=output("disk/merged"))


def plugins(place: Place) -> Iterator[Input]:
    """Plugins that are made, built and tested."""
    full, read_only = Disk(room=0), Disk(is_read_only=True)
    for name, disk in (("full", full), ("no names", Disk(names=2)), ("read-only", read_only)):
        yield Input(f"plugin new: {name}", {}, ["plugin", "new", "p", "--lang", "python"], r"(?s)\bp\b.*\nhint: the ",
                    through=["env", "-C", "disk"], around=disk.around, after=fails)
    case = {"cases.jsonl": lines({"response": "Answer: 4", "answer": "4", "expect": {"score": 0}})}
    test = ["plugin", "test", place.plugin("exact-answer"), "--cases", "disk/cases.jsonl"]
    for name, disk in (("full", full), ("read-only", read_only)):
        disk = disk._replace(files=case)
        yield Input(f"plugin test: the update of cases, {name}", {}, [*test, "--update"], HINT, around=disk.around,
                    after=output("disk/cases.jsonl", old=case["cases.jsonl"]))
        yield Input(f"plugin test: a report, {name}", {}, [*test, "--junit", "disk/r.xml"], HINT, around=disk.around,
                    after=output("disk/r.xml"))
    yield Input("man pages: read-only", {}, ["man", "disk"], HINT, around=read_only.around, after=fails)
    # Where the set-up installs it.
    path = os.pathsep.join([*map(str, Path.home().glob(".cache/gavel/componentize-py-*/bin")), os.environ["PATH"]])
    if not shutil.which("componentize-py", path=path):
        print("disks: there is no componentize-py: no plugin is built", flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        gavel(place, Path(name), "plugin", "new", "p", "--lang", "python").check_returncode()
        project = dict(files(Path(name)))
    for name, disk in (("full", full), ("with 200 KiB", Disk(room=200 * KB)), ("read-only", read_only)):
        # What componentize-py reports itself is quoted.
        says = rf"{HINT}|output:\s+No space left on device"
        yield Input(f"plugin build: {name}", {}, ["plugin", "build", "disk/p"], says,
                    around=disk._replace(files=project).around, after=fails, variables={"PATH": path})


def disk_inputs(place: Place) -> Iterator[Input]:
    train, sft = Learning(place, "train", TRAIN), Learning(place, "sft", SFT)
    families = [train.inputs(True), sft.inputs(False), scoring(place), recording(place), caches(place),
                models(place, train), plugins(place)]
    why, without_mounts, without_quotas = why_no_mounts(), 0, 0
    for each in (each for family in families for each in family):
        disk = getattr(each.around, "__self__", None)
        if disk and disk.quota is not None and why_no_quotas():
            without_quotas += 1
        elif why and disk and disk.is_mounted():
            without_mounts += 1
        else:
            yield each
    if without_mounts:
        print(f"disks: this machine allows no mounts ({why}), without which {without_mounts} inputs are left out: run this as "
              "root, or where users may have namespaces of their own", flush=True)
    if without_quotas:
        print(f"disks: this machine allows no quotas ({why_no_quotas()}), without which {without_quotas} inputs are left out: "
              "run this as root, with btrfs-progs and a kernel with btrfs", flush=True)


def ask_server(command: list[str]) -> int:
    """Starts a server, asks it once, and ends it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    found = re.search(r"http://([\d.]+):(\d+)", process.stdout.readline().decode())
    if found is None:
        return process.wait()
    status, text = send((found[1], int(found[2])), PATH, ask())
    print(status, text, flush=True)
    process.kill()
    process.wait()
    return 0 if status == 200 else 1


if __name__ == "__main__":
    sys.exit(ask_server(sys.argv[1:]))
