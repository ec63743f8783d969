"""Datasets in Parquet and JSON Lines, to score and to learn from."""
import gzip
import struct
from typing import Any, Callable, Iterator, NamedTuple

from inputs import BEYOND, Input, Link, MB, Place, deep, encoded, lines, of
from tool_servers import MODEL, ROWS, config


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


class Long(int):
    """A number of 64 bits."""


def kind(value: Any) -> int:
    return 6 if isinstance(value, Long) else {int: 5, str: 8, bytes: 8, list: 9, dict: 12}[type(value)]


def thrift(value: Any) -> bytes:
    """A value in Thrift's compact protocol. A dict is a struct, with its fields by their numbers."""
    if isinstance(value, int):
        return varint((value << 1) ^ (value >> 63))
    if isinstance(value, str | bytes):
        return varint(len(encoded(value))) + encoded(value)
    if isinstance(value, list):
        item = kind(value[0]) if value else 12
        start = bytes([len(value) << 4 | item]) if len(value) < 15 else bytes([0xf0 | item]) + varint(len(value))
        return start + b"".join(map(thrift, value))
    numbers = sorted(value)
    deltas = [number - before for number, before in zip(numbers, [0, *numbers])]
    fields = [bytes([delta << 4 | kind(value[at])]) + thrift(value[at]) for at, delta in zip(numbers, deltas)]
    return b"".join(fields) + b"\0"


class Column(NamedTuple):
    """A column whose rows all have the same text, repeated, or lists of it. Fields of its structs are replaced."""

    name: str
    rows: int = 1
    times: int = 1
    items: int = 1
    depth: int = 0
    squeeze: Callable[[bytes], bytes] | None = None
    page: dict[int, Any] = {}
    chunk: dict[int, Any] = {}


def runs(*pairs: tuple[int, int]) -> bytes:
    return b"".join(varint(count << 1) + bytes([value]) for count, value in pairs)


def page(column: Column, content: bytes, header: dict[int, Any]) -> bytes:
    packed = column.squeeze(content) if column.squeeze else content
    return thrift({2: len(content), 3: len(packed), **header}) + packed


def parquet(*columns: Column, rows: int | None = None, footer: Callable[[Any], Any] = dict) -> Callable[[], bytes]:
    """Makes a file with one row group. A run length stands for all rows, so that the file is short."""

    def made() -> bytes:
        content, chunks, schema = b"PAR1", [], [{4: "schema", 5: len(columns)}]
        for column in columns:
            start, values, text, levels = len(content), column.rows * column.items, b"4" * column.times, b""
            content += page(column, struct.pack("<I", len(text)) + text, {1: 2, 7: {1: 1, 2: 0}})
            data = len(content)
            if column.depth:
                repeated = runs((1, 0), (column.items - 1, column.depth)) * column.rows
                parts = repeated, runs((values, 2 * column.depth))
                levels = b"".join(struct.pack("<I", len(part)) + part for part in parts)
            header = {1: 0, 5: {1: values, 2: 8, 3: 3, 4: 3}, **column.page}
            content += page(column, levels + b"\x01" + runs((values, 0)), header)
            outer = [{3: 1, 4: column.name, 5: 1, 6: 3}, {3: 2, 4: "list", 5: 1}] * column.depth
            leaf = {1: 6, 3: 0, 4: "element" if column.depth else column.name, 6: 0}
            schema += [*outer, leaf]
            path, size = [*([column.name, "list"] * column.depth), leaf[4]], Long(len(content) - start)
            meta = {
                1: 6, 2: [0, 8], 3: path, 4: 2 if column.squeeze else 0, 5: Long(values), 6: size, 7: size,
                9: Long(data),
            }
            chunks.append({2: Long(start), 3: {**meta, 11: Long(start), **column.chunk}})
        count = Long(columns[0].rows if rows is None else rows)
        whole = footer({1: 1, 2: schema, 3: count, 4: [{1: chunks, 2: Long(len(content)), 3: count}]})
        end = whole if isinstance(whole, bytes) else thrift(whole)
        return content + end + struct.pack("<I", len(end)) + b"PAR1"

    return made


def pair(rows: int = 1, **more: Any) -> tuple[Column, Column]:
    return Column("prompt", rows), Column("response", rows, **more)


def bomb(content: bytes) -> bytes:
    """Gzip that expands to three gigabytes, whatever the page claims."""
    return gzip.compress(content) + gzip.compress(b"x" * (100 * MB)) * 30


FILES: dict[str, Callable[[], bytes]] = {
    "as it should be": parquet(*pair(3)), "a page of a billion rows": parquet(*pair(1 << 30), rows=2),
    "many rows": parquet(*pair(150_000)), "a list of a billion": parquet(*pair(items=1 << 30, depth=1)),
    "a list of thirty million": parquet(*pair(items=30_000_000, depth=1)),
    "many long lists": parquet(*pair(900, items=1_000_000, depth=1)), "deep lists": parquet(*pair(items=5, depth=120)),
    "long rows": parquet(*pair(60, times=4 * MB)),
    "a list of long texts": parquet(*pair(times=MB, items=1 << 20, depth=1)),
    "the longest row": parquet(*pair(times=60 * MB, squeeze=gzip.compress)),
    "a row too long": parquet(*pair(times=70 * MB, squeeze=gzip.compress)),
    "gzip beyond its claim": parquet(*pair(squeeze=bomb)),
    "snappy of all": parquet(*pair(squeeze=lambda content: b"\xff\xff\xff\xff\x0f" + content, chunk={4: 1})),
    "no zstd": parquet(*pair(chunk={4: 6})), "a large page": parquet(*pair(page={2: 2**31 - 1, 3: 2**31 - 1})),
    "a page below 0": parquet(*pair(page={2: -1, 3: -1})),
    **{f"the encoding {number}": parquet(*pair(2, page={5: {1: 2, 2: number, 3: 3, 4: 3}})) for number in (0, 5, 6, 7,
        99)},
    "a chunk beyond the file": parquet(*pair(chunk={9: Long(2**62), 11: Long(2**62)})),
    "a chunk below 0": parquet(*pair(chunk={9: Long(-4), 11: Long(-4), 7: Long(-1)})),
    "a long name": lambda: parquet(*pair(), Column("n" * MB))(),
    "many columns": parquet(*pair(), *(Column(f"c{at}") for at in range(5_000))),
    "groups in groups": parquet(*pair(),
        footer=lambda footer: {**footer,
        2: [{4: "schema", 5: 1}, *[{3: 0, 4: "g", 5: 1}] * 8_000, {1: 6, 3: 0, 4: "x"}]}),
    "many row groups": parquet(*pair(), footer=lambda footer: {**footer, 4: footer[4] * 20_000}),
    "a footer of structs": parquet(*pair(), footer=lambda footer: b"\x1c" * MB),
    "a long footer": lambda: b"PAR1" + struct.pack("<I", 2**32 - 1) + b"PAR1",
}


def scored(name: str, files: dict[str, Any], place: Place, data: str, says: str, *options: str) -> Input:
    plugin = ["--plugin", "answer=" + place.plugin("exact-answer")]
    return Input(name, files, ["score", *plugin, "--data", data, "--out", "out.jsonl", *options], says)


def parquet_inputs(place: Place) -> Iterator[Input]:
    for name, content in FILES.items():
        yield scored(name, {"d.parquet": content}, place, "d.parquet", r"d\.parquet")
    content = parquet(Column("prompt", 1_500), Column("answer", 1_500, MB, squeeze=gzip.compress))
    run = config(place, '[data]\ntrain = "d.parquet"\n', r"d\.parquet", d_parquet=content)
    yield run._replace(name="long answers to learn from")


ROW = '{"prompt": "2+2?", "response": "Answer: 4", "answer": "4"'
LINES: dict[str, Any] = {
    "deep and long": lambda: f'{ROW}, "x": {deep(120, "1," * (10 * MB) + "1")}}}',
    "a field often": lambda: "{" + '"prompt": "a", ' * MB + '"response": "b"}',
    "many fields": lambda: lines({"prompt": "a", "response": "b", **{f"f{at}": at for at in range(900_000)}}),
    "many escapes": lambda: ROW + ', "x": "' + "\\u0061" * (8 * MB) + '"}',
    "a mark in each line": f"\ufeff{ROW}}}\n" * 2, "UTF-16": (ROW + "}\n").encode("utf-16"),
    "a long line": lambda: ROW + ', "x": "' + "x" * (70 * MB) + '"}\n' + ROW + "}", "no line break": of(" ", 65 * MB),
    "many bad lines": of("{\n", 100_000), "one group of all": of(ROW + ', "id": "1"}\n', 30_000),
    "an escape for the terminal": ROW + ', "prompt": ["\\u001b[2J"]}',
}
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,===="}}
CELLS: dict[str, dict[str, Any]] = {
    "a response of null": {"response": None},
    "an image of nothing": {"response": [{"role": "assistant", "content": [PNG]}]}, "a long id": {"id": "i" * 100_000},
    "an index beyond all": {"extra_info": {"index": 1e308, "split": "../../x"}},
    "many messages": {"response": [{"role": "assistant", "content": "a"}] * 9_000},
}


def line_inputs(place: Place) -> Iterator[Input]:
    rows = {name: lines({"prompt": "a", "response": "b", "answer": "c", **cells}) for name, cells in CELLS.items()}
    for name, content in {**LINES, **rows}.items():
        yield scored(name, {"d.jsonl": content}, place, "d.jsonl", r"d\.jsonl")
    loops = {"d/x.jsonl": ROWS, "d/a": Link("."), "d/b": Link(".")}
    yield scored("folders in themselves", loops, place, "d/**/*.jsonl", "d/")
    column = "answer=a" + ".a" * 9_000
    yield scored("a long column", {"d.jsonl": ROWS}, place, "d.jsonl", "--column", "--column", column)


TURNS = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
# Rows by their commands.
LEARNED: dict[tuple[str, str], Any] = {
    ("sft", "many turns"): {"prompt": None, "messages": TURNS * 3000}, ("sft", "nothing"): {"response": ""},
    ("sft", "a long prompt"): lambda: {"prompt": "a" * (12 * MB), "response": "b"},
    ("sft", "a longer prompt"): lambda: {"prompt": "a" * (50 * MB), "response": "b"},
    ("sft", "variables"): {"response": "b", "chat_template_kwargs": {"messages": 1}},
    ("sft", "deep tools"): {"response": "b", "tools": deep(9000)},
    ("sft", "thoughts"): {"prompt": None, "messages": [TURNS[0], {**TURNS[1], "reasoning_content": "<think>" * 9000}]},
    ("dpo", "nothing"): {"chosen": "", "rejected": ""},
    ("dpo", "other prompts"): {"prompt": None, "chosen": TURNS, "rejected": TURNS[1:] + TURNS},
    ("dpo", "a long side"): lambda: {"chosen": "a" * (12 * MB), "rejected": "b"},
    ("reward-model", "a margin of text"): {"chosen": "a", "rejected": "b", "margin": "NaN"},
    ("reward-model", "a large margin"): {"chosen": "a", "rejected": "b", "margin": 1e308},
}
QUERIES = {
    "rows beyond all": f"rows={BEYOND}", "many rows": "rows=1000000", "a long parameter": "rows=1&x=" + "9" * 100_000,
    "a deep parameter": "rows=1&x=" + deep(9000),
}


def learning_inputs(place: Place) -> Iterator[Input]:
    """Rows to learn from, of files and of a taskset."""
    learn = MODEL + '[data]\ntrain = "d.jsonl"\n[train]\nsteps = 1\nbatch_size = 1\nlearning_rate = 1e-4\n'
    for (command, name), row in LEARNED.items():
        content = lambda row=row: lines({"prompt": "a", **(row() if callable(row) else row)})
        files = {"run.toml": learn, "d.jsonl": content}
        yield Input(f"{command}: {name}", files, [command, "-c", "run.toml", "--dry-run"], r"d\.jsonl")
    for name, query in QUERIES.items():
        data = f'[data]\ntrain = "plugin:{place.guest("sums")}?{query}"\n'
        yield config(place, data, r"sums\.wasm")._replace(name=f"a taskset: {name}")
