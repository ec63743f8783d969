"""Each file that the program reads, in odd forms."""
import re
from pathlib import Path
from typing import Any, Iterator

from checkpoints import ADAPTER, QUERY_SIZES, asked, checkpoint, tensors
from datasets import scored
from folders import recording
from inputs import Input, Link, PIPE, Place, ZERO, deep
from services import service
from tool_servers import config

ODD: dict[str, Any] = {
    "nothing": "", "deep lists": deep(100_000), "no UTF-8": b"\xff\xfe" * 99, "a pipe": PIPE, "a device": ZERO,
}


def odd_inputs(place: Place) -> Iterator[Input]:
    """Each file that the program reads, in each odd form."""
    adapter = {"a/adapter_config.json": ADAPTER, "a/adapter_model.safetensors": lambda: tensors(QUERY_SIZES)}
    index = {**checkpoint(model=None), "m/model.safetensors.index.json": ""}
    locks = {"f/state.json": "", "f/1.lock": ""}
    recorded, run = recording(place), config(place, "")
    commands = {
        **dict.fromkeys(checkpoint(chat_template="", generation_config=""), asked("", checkpoint(), "")),
        **dict.fromkeys(adapter, asked("", {**checkpoint(), **adapter}, "", model="a")),
        "m/model.safetensors.index.json": asked("", index, ""), "run.toml": run, "rows.jsonl": run,
        "d.parquet": scored("", {}, place, "d.parquet", ""),
        **dict.fromkeys(locks, service(place, "http://127.0.0.1:9", "x", locks, "", share="f")),
        **{path: Input("", recorded, ["replay", "r"], "") for path in recorded},
    }
    for path, usual in commands.items():
        for name, content in {**ODD, "a link to itself": Link(Path(path).name)}.items():
            if (path, name) == ("run.toml", "a pipe"):
                # `-c <(…)` names a pipe too.
                continue
            says = rf"{re.escape(Path(path).name)}|{Path(path).parts[0]}\b|prompt"
            yield Input(f"{path[:24]}: {name}", {**usual.files, path: content}, usual.command, says)
