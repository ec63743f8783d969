"""Folders of limiters, recordings, and configurations."""
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterator

from datasets import scored
from inputs import BEYOND, Input, Link, MB, Place, ZERO, deep, lines, of, write
from services import outside, service, verdict
from tool_servers import ROWS, config

BUCKET = {"rate": 1.0, "capacity": 1.0, "level": 1.0, "at": 0.0}
STATE = {
    **dict.fromkeys(["requests", "tokens", "concurrency", "reported_requests", "reported_tokens"]), "in_flight": {},
    "paused_until": 0.0, "at": 0.0,
}
STATES: dict[str, dict[str, Any]] = {
    "the future": {"at": 1e18, "paused_until": 1e18}, "the past": {"at": -1e18},
    "a debt": {"requests": {**BUCKET, "rate": 0.0, "capacity": 0.0, "level": -1e9}},
    "a bucket below 0": {"requests": {**BUCKET, "rate": -1.0, "capacity": -1.0, "at": 1e300}},
    "a full bucket": {"requests": {**BUCKET, "level": 1e308}, "tokens": {**BUCKET, "level": 1e308}},
    "many under way": {"in_flight": {str(at): {"requests": 2**63, "tokens": 1e308} for at in range(1, 5000)}},
    "odd processes": {"in_flight": {str(at): {"requests": 1, "tokens": 5e-324} for at in (0, 4097, 2**32 - 1)}},
}


def limiter_inputs(place: Place) -> Iterator[Input]:
    states = {f"a state: {name}": {"f/state.json": {**STATE, **state}} for name, state in STATES.items()}
    folders = {
        **states, "two megabytes": {"f/state.json": of(" ", 2 * MB)}, "a file as folder": {"f": ""},
        "a folder in itself": {"f": Link("f")}, "all locks": {f"f/{at}.lock": "" for at in range(1, 4200)},
    }
    shares = "/proc/self", "/sys/x/y", "a\0b", "d/" * 9_000
    ways = [(name, "f", files) for name, files in folders.items()] + [(share[:9], share, {}) for share in shares]
    with outside({name: verdict() for name, *_ in ways}) as address:
        for name, share, files in ways:
            yield service(place, address, name, files, "turns", share=share)


def recording(place: Place) -> dict[str, bytes]:
    """The files of a recording with three rows."""
    rows = lines(*({"prompt": "a", "response": f"Answer: {at}", "answer": "1"} for at in range(3)))
    made = scored("", {}, place, "rows.jsonl", "", "--record", "r").command
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "rows.jsonl"), rows)
        subprocess.run([place.gavel, *made], cwd=folder, check=True, capture_output=True)
        files = [path for path in Path(folder, "r").rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def recording_inputs(place: Place) -> Iterator[Input]:
    kept = recording(place)
    samples, lineups, tasks = "r/trajectories/step-000000.jsonl", "r/plugins/lineups.json", "r/tasks.jsonl"
    line, lineup = json.loads(kept[samples].splitlines()[0]), json.loads(kept[lineups])[0]
    sample = lambda **more: {samples: lines({**line, **more}).encode() + kept[samples].split(b"\n", 1)[1]}
    plugin = lambda **more: {lineups: [{**lineup, "plugins": [{**lineup["plugins"][0], **more}]}]}
    limited = lambda **more: plugin(limits={**lineup["plugins"][0]["limits"], **more})
    ways: dict[str, dict[str, Any]] = {
        "counts beyond all": sample(turns=2**64 - 1, prompt_length=2**64 - 1, sample=2**64 - 1),
        "a step beyond all": sample(step=2**64 - 1, trained_step=2**64 - 1), "a long id": sample(id="i" * MB),
        "a path as hash": sample(task="../../etc/passwd"),
        "many plugins": sample(plugins={f"p{at}": line["plugins"]["answer"] for at in range(10_000)}),
        "a long line": {samples: lambda: '{"id": "' + "x" * (70 * MB) + '"}\n'},
        "many lines": {samples: kept[samples] * 3000},
        "many steps": {f"r/trajectories/step-{at:06}.jsonl": "" for at in range(1, 3000)},
        "many tasks": {tasks: kept[tasks] * 9_000}, "a path as component": plugin(component="../../../etc/passwd"),
        "a long component": plugin(component="a" * MB),
        "limits beyond all": limited(memory=2**64 - 1, deadline={"secs": 2**64 - 1, "nanos": 999_999_999}),
        "no limits": limited(memory=0, output=0, handles=0), "a plugin after itself": plugin(after=["answer"]),
        "grants": plugin(grants={"clock": "real", "random": "os", "read": ["/:/all"], "env": ["HOME"]}),
        "an odd range": plugin(info={"name": "x", "version": "", "pure": True, "score_range": [1e308, -1e308]}),
    }
    for name, change in ways.items():
        yield Input(name, {**kept, **change}, ["replay", "r"], r"\br/|\br\b|`answer`")


CHAT_TABLE = 'base_url = "http://127.0.0.1:9"\nmodel = "m"\n'
TABLES: dict[str, tuple[str, str]] = {
    "many epochs": ("train", f"epochs = {2**63 - 1}"),
    "odd betas": ("train.optimizer", "betas = [1.0, 1e308]\neps = 0.0"),
    "a large batch": ("rollout", f"max_batch = {2**63 - 1}"), "no temperature": ("rollout", "temperature = nan"),
    "a bias beyond all": ("rollout", f"logit_bias = {{ {BEYOND} = 1.0 }}"),
    "a stop of nothing": ("rollout", 'stop = [""]'), "a large cache": ("rollout", 'cache_memory = "999999999EiB"'),
    "no time": ("limits", 'timeout = "0s"'), "no memory": ("limits", 'memory = "0B"\nfuel = 0'),
    "much memory": ("limits", 'memory = "16EiB"'),
    "much of all": ("limits", f"handles = {2**32}\nrequests = {2**32}\nfuel = {2**63 - 1}"),
    "a long size": ("limits", f'output = "{"9" * 100_000}"'),
    "no price": ("chat.judge", CHAT_TABLE + "price = { prompt = nan, completion = -1.0 }"),
    "options of no number": ("chat.judge", CHAT_TABLE + "options = { b = nan }"),
    "a small rate": ("limiter.turns", "requests_per_second = 5e-324"), "no money": ("budget", "money = nan"),
    "a log above": ("log", 'dir = "../../../../proc"\nname = "../x"'),
    "a log in the system": ("log", 'dir = "/proc/self"'), "many threads": ("resources", "plugin_threads = 4294967295"),
    "many threads of torch": ("resources", "torch_threads = 4294967295"),
    "a deep column": ("data.columns", f'prompt = "{"a." * 9_000}b"'),
    "many samples": ("data", f'validation = "rows.jsonl"\nvalidation_samples = {2**63 - 1}'),
    "no turns": ("agent", 'kind = "tools"\nmax_turns = 0'),
}
PARAMS = {
    "deep": deep(9_000, "1", '{"prefix": ', "}"), "a list": "[]", "half a character": '{"prefix": "\\ud800"}',
    "a number": '{"prefix": 1e308}',
}


def chain(count: int, times: int) -> dict[str, str]:
    """Files that each include the next one, so many times."""
    files = {f"{at}.toml": f"include = {json.dumps([f'{at + 1}.toml'] * times)}\n" for at in range(count)}
    return files | {f"{count}.toml": ""}


def configuration_inputs(place: Place) -> Iterator[Input]:
    usual = config(place, "")
    base = usual.files["run.toml"]

    def table(name: str, text: str) -> str:
        known = f"[{name}]\n"
        return base.replace(known, f"{known}{text}\n") if known in base else f"{base}{known}{text}\n"

    ways: dict[str, Any] = {
        "a deep key": "a." * 100_000 + "b = 1", "many keys": base + "".join(f"k{at} = 1\n" for at in range(60_000)),
        "many tables": base + "".join(f"[t{at}]\n" for at in range(60_000)),
        "many rewards": base + "".join(f'[[reward]]\nname = "r{at}"\npath = "x.wasm"\n' for at in range(3000)),
        "a long text": lambda: base + 'x = "' + "x" * (10 * MB) + '"', "an escape": base + '"\\u001b[2J" = 1\n',
        "an included device": 'include = "zero.toml"', "the next file twice": 'include = "0.toml"\n' + base,
        **{name: table(*each) for name, each in TABLES.items()},
    }
    for name, text in ways.items():
        files = {**usual.files, "run.toml": text, "zero.toml": ZERO, **(chain(22, 2) if "twice" in name else {})}
        yield Input(name, files, usual.command, r"\.toml|rows\.jsonl|/proc|plugin `|chat\.judge")
    command = ["train", "-c", "0.toml", "--dry-run"]
    yield Input("a chain of files", {**usual.files, **chain(1000, 1)}, command, r"\d\.toml")
    for name, params in PARAMS.items():
        options = "--params", f"answer={params}"
        yield scored(f"parameters: {name}", {"rows.jsonl": ROWS}, place, "rows.jsonl", "`answer`", *options)
