"""Writes tests/parity/parquet: files as pyarrow, pandas, polars, datasets and DuckDB write them, each with its rows in
JSON Lines as pyarrow reads them, in the form that docs/configuration.md gives each type.

    pip install pyarrow==26.0.1 pandas==3.1.1 polars==2.1.0 datasets==5.2.0 duckdb==2.0.1
    python tests/parity/parquet_files.py
"""

import datetime as dt
import decimal
import json
import uuid
from pathlib import Path

import datasets
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent / "parquet"
WHEN = dt.datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=dt.timezone.utc)
NAIVE = WHEN.replace(tzinfo=None)
DAY = dt.timedelta(days=1, seconds=3, microseconds=500000)


def of_pyarrow() -> None:
    columns = {}

    def add(name, value, kind):
        columns[name] = pa.array([value, None], kind)

    def cast(name, value, kind):
        columns[name] = pa.array([value, None], pa.int64()).cast(kind)

    whole = WHEN.replace(microsecond=0)
    for unit in ("s", "ms", "us", "ns"):
        add(f"naive_{unit}", whole.replace(tzinfo=None), pa.timestamp(unit))
        add(f"duration_{unit}", dt.timedelta(days=1, seconds=3), pa.duration(unit))
    microseconds = 1709168523456789
    for zone in ("UTC", "+00:00", "Etc/UTC", "Europe/Berlin", "America/New_York", "+05:30", "-08:00"):
        cast(f"zone_{zone}", microseconds, pa.timestamp("us", zone))
    cast("nanoseconds", microseconds * 1000 + 123, pa.timestamp("ns", "UTC"))
    cast("before_1970", -1, pa.timestamp("us", "UTC"))
    cast("beyond_dates", 2**63 - 1, pa.timestamp("us", "UTC"))
    add("backwards", -dt.timedelta(seconds=1, microseconds=500000), pa.duration("us"))
    add("date32", WHEN.date(), pa.date32())
    add("date64", WHEN.date(), pa.date64())
    add("time_s", dt.time(1, 2, 3), pa.time32("s"))
    add("time_ms", dt.time(1, 2, 3, 456000), pa.time32("ms"))
    add("time_us", dt.time(1, 2, 3, 456789), pa.time64("us"))
    add("time_ns", dt.time(23, 59, 59), pa.time64("ns"))
    add("decimal32", decimal.Decimal("4.50"), pa.decimal32(5, 2))
    add("decimal64", decimal.Decimal("-4.50"), pa.decimal64(15, 2))
    add("decimal128", decimal.Decimal("0.05"), pa.decimal128(10, 2))
    add("decimal256", decimal.Decimal("12345678901234567890123456789012345678901234.50"), pa.decimal256(60, 2))
    add("binary", b"\x00\xffa", pa.binary())
    add("large_binary", b"a", pa.large_binary())
    add("fixed_binary", b"ab", pa.binary(2))
    add("binary_view", b"a", pa.binary_view())
    add("large_string", "é", pa.large_string())
    add("string_view", "\"\n", pa.string_view())
    add("dictionary", "a", pa.dictionary(pa.int32(), pa.string()))
    add("dictionary_of_numbers", 7, pa.dictionary(pa.int8(), pa.int64()))
    columns["dictionary_of_times"] = pa.DictionaryArray.from_arrays(
        pa.array([0, None], pa.int8()), pa.array([WHEN], pa.timestamp("us", "UTC"))
    )
    add("half", 1.5, pa.float16())
    add("float", 0.1, pa.float32())
    add("not_a_number", float("nan"), pa.float64())
    add("none", None, pa.null())
    add("bool", True, pa.bool_())
    add("uint64", 2**64 - 1, pa.uint64())
    add("list", [1, None], pa.list_(pa.int64()))
    add("large_list", [], pa.large_list(pa.int64()))
    add("fixed_list", [1, 2], pa.list_(pa.int64(), 2))
    add("list_view", [1], pa.list_view(pa.int64()))
    add("list_of_times", [WHEN, None], pa.list_(pa.timestamp("us", "Europe/Berlin")))
    add("struct_of_time", {"at": WHEN, "no": None}, pa.struct([("at", pa.timestamp("us", "UTC")), ("no", pa.date32())]))
    add("map", [("k", 1), ("l", None)], pa.map_(pa.string(), pa.int64()))
    add("map_of_int", [(1, "v"), (-2, "w")], pa.map_(pa.int64(), pa.string()))
    add("map_of_bool", [(True, 1), (False, 2)], pa.map_(pa.bool_(), pa.int64()))
    add("map_of_dictionary", [("k", 1)], pa.map_(pa.dictionary(pa.int32(), pa.string()), pa.int64()))
    add("map_of_date", [(WHEN.date(), WHEN)], pa.map_(pa.date32(), pa.timestamp("us", "UTC")))
    add("map_of_struct", [({"a": 1}, {"b": 2})], pa.map_(pa.struct([("a", pa.int64())]), pa.struct([("b", pa.int64())])))
    add("empty_map", [], pa.map_(pa.int64(), pa.string()))
    texts = pa.array(['{"a": [1, 2.50]}', '"x"', "null", "no JSON", None])
    documents = pa.ExtensionArray.from_storage(pa.json_(pa.string()), texts)
    columns["json"] = documents.take(pa.array([0, 4]))
    columns["json_text"] = documents.take(pa.array([1, 2]))
    columns["json_that_is_none"] = documents.take(pa.array([3, 4]))
    columns["list_of_json"] = pa.ListArray.from_arrays(pa.array([0, 2, 2], pa.int32()), documents.take(pa.array([0, 4])))
    identity = uuid.UUID("550e8400-e29b-41d4-a716-446655440000").bytes
    columns["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([identity, None], pa.binary(16)))
    write("pyarrow", lambda path: pq.write_table(pa.table(columns), path))


def of_pandas() -> None:
    frame = pd.DataFrame(
        {
            "utc": pd.to_datetime(["2024-02-29T01:02:03Z", None]),
            "zone": pd.to_datetime(["2024-02-29T01:02:03.5", None]).tz_localize("Asia/Tokyo"),
            "naive": pd.to_datetime(["2024-02-29T01:02:03", None]),
            "delta": [pd.Timedelta(DAY), pd.NaT],
            "category": pd.Categorical(["a", None]),
            "date": [WHEN.date(), None],
            "time": [WHEN.time(), None],
            "decimal": [decimal.Decimal("4.50"), None],
            "bytes": [b"\x00", None],
            "int": pd.array([1, None], "Int64"),
            "string": pd.array(["a", None], "string"),
            "messages": [[{"role": "user", "content": "q", "at": WHEN}], []],
        }
    )
    write("pandas", frame.to_parquet)


def of_polars() -> None:
    frame = pl.DataFrame(
        {
            "utc": pl.Series([WHEN, None], dtype=pl.Datetime("us", "UTC")),
            "zone": pl.Series([WHEN, None], dtype=pl.Datetime("ms", "Europe/Berlin")),
            "naive": pl.Series([NAIVE, None], dtype=pl.Datetime("ns")),
            "duration": pl.Series([DAY, None], dtype=pl.Duration("us")),
            "time": pl.Series([WHEN.time(), None], dtype=pl.Time),
            "date": pl.Series([WHEN.date(), None], dtype=pl.Date),
            "decimal": pl.Series([decimal.Decimal("4.50"), None], dtype=pl.Decimal(10, 2)),
            "categorical": pl.Series(["a", None], dtype=pl.Categorical),
            "enum": pl.Series(["a", None], dtype=pl.Enum(["a", "b"])),
            "binary": pl.Series([b"\x00", None], dtype=pl.Binary),
            "list": pl.Series([[WHEN], None], dtype=pl.List(pl.Datetime("us", "UTC"))),
            "array": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int8, 2)),
            "struct": pl.Series([{"a": WHEN}, None], dtype=pl.Struct({"a": pl.Datetime("us", "UTC")})),
            "null": pl.Series([None, None], dtype=pl.Null),
        }
    )
    write("polars", frame.write_parquet)


def of_datasets() -> None:
    rows = [
        {
            "prompt": [{"role": "user", "content": "1 + 2?"}],
            "reward_model": {"style": "rule", "ground_truth": "3"},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": {"type": "integer"}}}}],
            "at": WHEN,
        },
        {
            "prompt": [{"role": "user", "content": "2 + 2?"}],
            "reward_model": {"style": "rule", "ground_truth": "4", "tolerance": 0.1},
            "tools": [{"type": "function", "function": {"name": "g", "parameters": {"y": {"enum": ["a"]}}}}],
            "at": WHEN,
        },
    ]
    features = datasets.Features(
        {
            "prompt": [{"role": datasets.Value("string"), "content": datasets.Value("string")}],
            "reward_model": datasets.Json(),
            "tools": datasets.List(datasets.Json()),
            "at": datasets.Value("timestamp[us, tz=UTC]"),
        }
    )
    write("datasets", datasets.Dataset.from_list(rows, features=features).to_parquet)


def of_duckdb() -> None:
    query = """
        select * from (values
            ('{"a": [1, 2.50]}'::json, [json '{"a": 1}', json '"x"'], '550e8400-e29b-41d4-a716-446655440000'::uuid,
             map {1: 'v', 2: 'w'}, timestamptz '2024-02-29 01:02:03+00', time '01:02:03.5', 4.50::decimal(10, 2),
             'a'::blob),
            (null, null, null, null, null, null, null, null)
        ) as rows(document, documents, identity, names, moment, daytime, price, content)
    """
    write("duckdb", lambda path: duckdb.sql(query).write_parquet(str(path)))


def write(name: str, to_file) -> None:
    path = FOLDER / f"{name}.parquet"
    to_file(path)
    # The types JSON and UUID of Parquet are then extension types, in files of any program.
    read = pq.ParquetFile(path, arrow_extensions_enabled=True).read()
    lines = []
    for row in range(read.num_rows):
        fields = (f"{json.dumps(name)}:{form(read.column(name)[row])}" for name in read.column_names)
        lines.append("{" + ",".join(fields) + "}\n")
    (FOLDER / f"{name}.jsonl").write_text("".join(lines))


def form(value: pa.Scalar) -> str:
    """The JSON of a value that pyarrow read."""
    kind = value.type
    if not value.is_valid:
        return "null"
    if isinstance(kind, pa.JsonType):
        text = value.as_py()
        try:
            json.loads(text)
        except ValueError:
            return json.dumps(text)
        return text
    if isinstance(kind, pa.UuidType):
        return json.dumps(str(value.as_py()))
    if pa.types.is_dictionary(kind):
        return form(value.value)
    if pa.types.is_map(kind):
        keys, values = value.values.flatten()
        return "{" + ",".join(f"{key(form(name))}:{form(of)}" for name, of in zip(keys, values)) + "}"
    if pa.types.is_struct(kind):
        fields = (f"{json.dumps(kind.field(at).name)}:{form(value[at])}" for at in range(kind.num_fields))
        return "{" + ",".join(fields) + "}"
    if is_list(kind):
        return "[" + ",".join(form(item) for item in value.values) + "]"
    if pa.types.is_timestamp(kind):
        end = "Z" if kind.tz else ""
        moment = in_nanoseconds(value.value, kind.unit)
        try:
            second = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=moment // 10**9)
        except OverflowError:
            return "null"
        return json.dumps(second.isoformat() + fraction(moment % 10**9) + end)
    if pa.types.is_duration(kind):
        length = in_nanoseconds(value.value, kind.unit)
        sign = "-" if length < 0 else ""
        seconds, part = divmod(abs(length), 10**9)
        return json.dumps(f"{sign}PT{seconds}{fraction(part).rstrip('0')}S")
    if pa.types.is_date(kind):
        return json.dumps(value.as_py().isoformat())
    if pa.types.is_time(kind):
        moment = in_nanoseconds(value.value, kind.unit)
        second = dt.time(moment // 10**9 // 3600, moment // 10**9 // 60 % 60, moment // 10**9 % 60)
        return json.dumps(second.isoformat() + fraction(moment % 10**9))
    plain = value.as_py()
    if isinstance(plain, decimal.Decimal):
        return format(plain, "f")
    if isinstance(plain, bytes):
        return json.dumps(plain.hex())
    if isinstance(plain, float):
        if plain != plain:
            return "null"
        # The shortest text of the value's own precision.
        return str(value.cast(pa.string())) if not pa.types.is_float16(kind) else json.dumps(plain)
    return json.dumps(plain, ensure_ascii=False)


def is_list(kind: pa.DataType) -> bool:
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(check(kind) for check in checks)


def key(text: str) -> str:
    return text if text.startswith('"') else json.dumps(text)


def in_nanoseconds(value: int, unit: str) -> int:
    return value * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]


def fraction(nanoseconds: int) -> str:
    """Nothing, or three, six or nine digits."""
    text = f"{nanoseconds:09}"
    while text.endswith("000"):
        text = text[:-3]
    return f".{text}" if text else ""


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    of_pyarrow()
    of_pandas()
    of_polars()
    of_datasets()
    of_duckdb()
