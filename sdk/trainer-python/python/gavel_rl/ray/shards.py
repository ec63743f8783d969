"""A Parquet dataset in shards: runs of rows that one worker scores, and whose scores are one file."""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow
import pyarrow.fs
import pyarrow.parquet

#: The most rows of a shard, and about the most bytes. A worker has a shard and its scores in memory, and a shard that
#: was interrupted is scored again.
_ROWS = 8192
_BYTES = 16 << 20
#: A dataset has as many shards, so that workers end at about the same time, unless they would have fewer rows than this.
_SHARDS = 128
_FEWEST_ROWS = 64
#: The rows that are decoded at once.
_DECODED = 2048


@dataclass(frozen=True)
class Shard:
    """The rows from ``first`` up to ``end``, counted over all files. Groups that begin here belong to it as a whole."""

    number: int
    first: int
    end: int


@dataclass(frozen=True)
class Files:
    """The files of a dataset, in order."""

    paths: list[str]
    #: The number of rows of each.
    rows: list[int]
    #: The bytes of their columns, uncompressed.
    bytes: int

    @classmethod
    def find(cls, data: str) -> Files:
        """The Parquet files of a path: a file, a folder, a pattern, or a URI such as ``s3://bucket/folder``."""
        filesystem, place = file_system(data)
        if any(sign in place for sign in "*?[") and not os.path.exists(place):
            places = [path for path in glob.glob(place, recursive=True) if os.path.isfile(path)]
        elif filesystem.get_file_info(place).type == pyarrow.fs.FileType.Directory:
            found = filesystem.get_file_info(pyarrow.fs.FileSelector(place))
            places = [info.path for info in found if info.is_file and not info.base_name.startswith(".")]
            places = [path for path in places if path.endswith((".parquet", ".jsonl"))]
        else:
            places = [place]
        others = sorted(path for path in places if not path.endswith(".parquet"))
        if others or not places:
            what = f"{others[0]} is not a Parquet file" if others else f"there is no Parquet file at {data}"
            raise ValueError(f"{what}\nhint: on Ray, data are .parquet files, or a folder of them")
        places.sort(key=lambda path: path.split("/"))
        sizes = [_size(filesystem, path) for path in places]
        scheme, mark, _ = data.partition("://")
        paths = [f"{scheme}://{path}" if mark else path for path in places]
        return cls(paths, [rows for rows, _ in sizes], sum(size for _, size in sizes))

    def shards(self) -> list[Shard]:
        """The shards of all rows."""
        total = sum(self.rows)
        rows = min(_ROWS, max(_FEWEST_ROWS, total // _SHARDS), max(1, _BYTES * total // max(1, self.bytes)))
        firsts = range(0, total, rows)
        return [Shard(number, first, min(first + rows, total)) for number, first in enumerate(firsts)]


def file_system(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The file system of a path or URI, and the path there."""
    if "://" in path:
        found: tuple[pyarrow.fs.FileSystem, str] = pyarrow.fs.FileSystem.from_uri(path)
        return found
    return pyarrow.fs.LocalFileSystem(), os.path.abspath(path)


def _size(filesystem: pyarrow.fs.FileSystem, path: str) -> tuple[int, int]:
    try:
        with filesystem.open_input_file(path) as file:
            metadata = pyarrow.parquet.ParquetFile(file).metadata
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    return metadata.num_rows, sum(group.total_byte_size for group in groups)


class ShardReader:
    """Reads shards. It keeps its place, so that shards in order decode each row once."""

    def __init__(self, files: Files, columns: Mapping[str, str]) -> None:
        self._files = files
        self._starts = [0, *accumulate(files.rows)]
        self._id = columns.get("id", "id")
        self._file: tuple[int, pyarrow.parquet.ParquetFile] | None = None
        #: The batches of a row group that are not decoded yet, and the number of its first row after them.
        self._batches: Iterator[pyarrow.RecordBatch] = iter(())
        self._until = 0
        #: The batches that were decoded last, with the numbers of their first rows.
        self._decoded: list[tuple[int, pyarrow.RecordBatch]] = []

    def read(self, shard: Shard) -> tuple[int, list[pyarrow.RecordBatch]]:
        """The number of the first row that belongs to a shard, and the rows from there."""
        first = shard.first
        before = None
        if first > 0:
            [last] = self._rows(first - 1, first)
            before = self._key(last, 0)
        batches = []
        for batch in self._rows(first, shard.end):
            # The rows of a group that began before are the shard's before.
            skipped = 0
            while before is not None and skipped < len(batch) and self._key(batch, skipped) == before:
                skipped += 1
            if skipped < len(batch):
                before = None
                batches.append(batch.slice(skipped))
            first += skipped
        return first, batches + (self._end_of_group(batches[-1], shard.end) if batches else [])

    def _end_of_group(self, last: pyarrow.RecordBatch, end: int) -> list[pyarrow.RecordBatch]:
        """The rows from ``end`` that are of the same group as the last row before."""
        key, rest = self._key(last, len(last) - 1), []
        while key is not None and end < self._starts[-1]:
            [batch] = self._rows(end, end + 1)
            if self._key(batch, 0) != key:
                break
            rest.append(batch)
            end += 1
        return rest

    def _key(self, batch: pyarrow.RecordBatch, row: int) -> Any:
        """What the rows of a group have in common; None if the row is alone."""
        value = self._value(batch, self._id, row)
        if value is not None:
            return value
        extra = self._value(batch, "extra_info", row)
        index = extra.get("index") if isinstance(extra, dict) else None
        return None if index is None else (index, extra.get("split"))

    @staticmethod
    def _value(batch: pyarrow.RecordBatch, path: str, row: int) -> Any:
        """The value of a column, or of a field within one."""
        if path in batch.schema.names:
            return batch.column(path)[row].as_py()
        column, dot, field = path.partition(".")
        value = batch.column(column)[row].as_py() if dot and column in batch.schema.names else None
        for name in field.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def _rows(self, first: int, end: int) -> Iterator[pyarrow.RecordBatch]:
        while first < end:
            start, batch = self._batch_of(first)
            taken = batch.slice(first - start, end - first)
            first += len(taken)
            yield taken

    def _batch_of(self, row: int) -> tuple[int, pyarrow.RecordBatch]:
        """The decoded batch that has a row, and the number of the batch's first row."""
        for start, batch in self._decoded:
            if start <= row < start + len(batch):
                return start, batch
        at = sum((self._decoded[-1][0], len(self._decoded[-1][1]))) if self._decoded else 0
        if not at <= row < self._until:
            at = self._open(row)
        while True:
            batch = next(self._batches)
            self._decoded = [*self._decoded[-1:], (at, batch)]
            at += len(batch)
            if row < at:
                return self._decoded[-1]

    def _open(self, row: int) -> int:
        """Opens the row group that has a row, and returns the number of its first row."""
        number = bisect_right(self._starts, row) - 1
        if self._file is None or self._file[0] != number:
            filesystem, path = file_system(self._files.paths[number])
            self._file = number, pyarrow.parquet.ParquetFile(filesystem.open_input_file(path))
            rows = self._file[1].metadata.num_rows
            if rows != self._files.rows[number]:
                raise ValueError(f"{path} has {rows} rows, and had {self._files.rows[number]} when the job began")
        file = self._file[1]
        start, group = self._starts[number], 0
        while start + file.metadata.row_group(group).num_rows <= row:
            start += file.metadata.row_group(group).num_rows
            group += 1
        self._until = start + file.metadata.row_group(group).num_rows
        self._batches = file.iter_batches(batch_size=_DECODED, row_groups=[group])
        return start
