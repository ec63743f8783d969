"""A job that scores a Parquet dataset on a cluster, each row exactly once, and goes on after a crash."""

from __future__ import annotations

import json
import os
import posixpath
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.fs
import pyarrow.parquet
import ray
from ray.data import ActorPoolStrategy, DataContext
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.checkpoint import CheckpointConfig, IdColumnCheckpointManager
from ray.data.datasource import BlockBasedFileDatasink, Datasource, ReadTask
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from gavel_rl.ray.limits import SharedLimits
from gavel_rl.ray.recipe import Recipe
from gavel_rl.ray.shards import Files, Shard, ShardReader, file_system
from gavel_rl.ray.summary import Summary

if TYPE_CHECKING:
    from gavel_rl.reward import Reward

#: Files of a job's folder.
_JOB, _SUMMARY, _SHARDS, _CHECKPOINT = "job.json", "summary.json", "shards", "checkpoint"
_SCORES = re.compile(r"-(\d{9})\.jsonl$")
#: How long a job waits for another one with the same folder to end, in seconds. Ray needs a moment to see a driver's
#: death.
_PATIENCE = 30.0


def score_parquet(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    rewards: Iterable[Reward | str | os.PathLike[str]],
    *,
    columns: Mapping[str, str] | None = None,
    compute: ActorPoolStrategy | None = None,
    num_cpus: int = 1,
    limiter: SharedLimits | Mapping[str, Any] | None = None,
    **options: Any,
) -> Summary:
    """Scores a Parquet dataset on the cluster that this process is connected to, with the lines of ``gavel score``.

    The dataset is divided into shards of up to 8,192 rows. The scores of each are a file of the folder ``out``: its
    files ``part-….jsonl``, one after another, are the lines that ``gavel score`` writes, in the order of the rows, with
    the same scores, outcomes, input hashes and seeds. Consecutive rows with the same ``id`` are a group, which one
    worker scores as a whole.

    A worker or a node may be lost, or join. If this process is interrupted or killed, the same call goes on where the
    job stopped: Ray Data's checkpoint in the folder has the shards whose scores are written. When the job ends, it has
    checked that each row has its scores exactly once.

    Args:
        data: The dataset, which all nodes can read: a ``.parquet`` file, a folder of them, a pattern, or a URI.
        out: The folder for the scores, which all nodes can write to, or its URI.
        rewards: The rewards, or their paths. Their components travel to the nodes.
        columns: The names of columns, as in ``[data.columns]``.
        compute: The pool; by default it grows with the cluster, from one actor.
        num_cpus: The processors of each worker, and the threads of its scorer.
        limiter: Limits of endpoints, by name, which hold over all nodes; or limits that others share too.
        options: The other arguments of :class:`gavel_rl.Scorer`.

    Raises:
        GavelError: A reward cannot be loaded.
        ValueError: An argument has a wrong value; the folder has the scores of another job, or is in use.
    """
    recipe = Recipe(rewards, limiter=limiter, **options).with_workers(num_cpus)
    return Job(os.fspath(data), os.fspath(out), recipe, dict(columns or {})).run(compute)


class Job:
    """A dataset, the folder for its scores, and the rewards."""

    def __init__(self, data: str, out: str, recipe: Recipe, columns: dict[str, str]) -> None:
        self._filesystem, self._folder = file_system(out)
        self._uri = out.rstrip("/") if "://" in out else f"file://{self._folder}"
        self._files = Files.find(data)
        self._shards = self._files.shards()
        self._recipe = recipe
        self._columns = columns

    def run(self, compute: ActorPoolStrategy | None = None) -> Summary:
        """Scores what is not scored yet, and returns the summary of all rows."""
        begun = time.perf_counter()
        lock = self._lock()
        try:
            self._begin()
            before = self._read(_SUMMARY)
            if before is None:
                self._score(compute)
                summary = self._check()
                summary.seconds = time.perf_counter() - begun
                self._write(_SUMMARY, summary.to_json())
            else:
                summary = Summary.from_json(before)
            self._finish()
        finally:
            ray.kill(lock)
        return summary

    def _lock(self) -> Any:
        """An actor that only one job with this folder can have. It ends with this process."""
        name = f"gavel score {self._uri}"
        # A worker's node may be lost.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        options = {"name": name, "namespace": "gavel", "num_cpus": 0, "scheduling_strategy": here}
        give_up = time.monotonic() + _PATIENCE
        while True:
            try:
                return ray.remote(_Lock).options(**options).remote()
            except ValueError:
                if time.monotonic() > give_up:
                    raise ValueError(
                        f"another job writes into {self._uri}\nhint: wait for it, or name another folder"
                    ) from None
                time.sleep(0.5)

    def _begin(self) -> None:
        """Notes what the job is, or checks that the folder has the same job."""
        job = {
            "files": [list(part) for part in zip(self._files.paths, self._files.rows)],
            "shards": len(self._shards),
            "columns": self._columns,
            "scorer": self._recipe.identity,
        }
        found = self._read(_JOB)
        if found is None:
            there = self._filesystem.get_file_info(pyarrow.fs.FileSelector(self._folder, allow_not_found=True))
            # A job that was killed at this point leaves a part of its file.
            if any(not info.base_name.startswith(f"{_JOB}.") for info in there):
                raise ValueError(f"{self._uri} is not empty, and has no job\nhint: name a new folder")
            self._filesystem.create_dir(self._folder, recursive=True)
            self._write(_JOB, json.dumps(job))
            return
        before = json.loads(found)
        changed = sorted(key for key, value in json.loads(json.dumps(job)).items() if before.get(key) != value)
        if changed:
            raise ValueError(
                f"{self._uri} has the scores of another job, with other {' and '.join(changed)}\n"
                "hint: name a new folder, or repeat the job with what it began with"
            )

    def _score(self, compute: ActorPoolStrategy | None) -> None:
        self._filesystem.create_dir(self._in(_SHARDS), recursive=True)
        written = self._written()
        shards = [shard for shard in self._shards if shard.number not in written]
        if not shards:
            return
        context = DataContext.get_current()
        kept = context.checkpoint_config, context.target_max_block_size
        # A shard is a row of Ray's: its number is the row's id.
        context.checkpoint_config = CheckpointConfig(
            id_column="shard",
            checkpoint_path=f"{self._uri}/{_CHECKPOINT}",
            delete_checkpoint_on_success=False,
            checkpoint_manager_cls=_Commits,
        )
        # Blocks of one row, so that none is divided anew when a worker repeats it.
        context.target_max_block_size = None
        try:
            # With the processors of a worker, the source is a part of it, and needs no process of its own.
            workers = self._recipe.workers
            source = ray.data.read_datasource(_Shards(shards), override_num_blocks=len(shards), num_cpus=workers)
            scored = source.map_batches(
                ShardScorer,
                batch_size=None,
                batch_format="pyarrow",
                fn_constructor_args=(self._recipe, self._files, self._columns),
                compute=compute or ActorPoolStrategy(min_size=1),
                num_cpus=workers,
            )
            # Writing needs no processor that scores. Without a bound, Ray starts a process for each file.
            writers = max(2, sum(node["Alive"] for node in ray.nodes()))
            scored.write_datasink(
                _Scores(f"{self._uri}/{_SHARDS}"), ray_remote_args={"num_cpus": 0}, concurrency=writers
            )
        finally:
            context.checkpoint_config, context.target_max_block_size = kept

    def _written(self) -> set[int]:
        """The shards whose scores are written, by Ray's checkpoint."""
        place = pyarrow.fs.FileSelector(self._in(_CHECKPOINT), allow_not_found=True)
        paths = [info.path for info in self._filesystem.get_file_info(place)]
        committed = [path for path in paths if path.endswith(".parquet") and not path.endswith(".pending.parquet")]
        tables = [pyarrow.parquet.read_table(path, filesystem=self._filesystem) for path in committed]
        return {number for table in tables for number in table["shard"].to_pylist()}

    def _check(self) -> Summary:
        """The summary, once each row has its scores exactly once."""
        infos = self._filesystem.get_file_info(pyarrow.fs.FileSelector(self._in(_SHARDS)))
        names, paths = {info.path for info in infos}, {}
        for info in sorted(infos, key=lambda info: info.path):
            found = _SCORES.search(info.path)
            if found and int(found[1]) not in paths and info.path.removesuffix("l") in names:
                paths[int(found[1])] = info.path
        missing = [shard.number for shard in self._shards if shard.number not in paths]
        if missing:
            raise RuntimeError(f"{len(missing)} shards have no scores, the first is {missing[0]}: Ray lost them")
        summary, row = Summary(), 0
        for shard in self._shards:
            path = paths[shard.number]
            own = Summary.from_json(self._open_text(path.removesuffix("l")))
            # A shard of which all rows are of an earlier group is empty.
            if own.rows and own.first != row:
                raise RuntimeError(f"{path} begins at row {own.first}, and {row} rows are before it")
            row += own.rows
            summary.join(own)
        if row != sum(self._files.rows):
            raise RuntimeError(f"{row} of {sum(self._files.rows)} rows have scores")
        return summary

    def _finish(self) -> None:
        """Names the files by their order, and removes what only the job needed. It may be repeated."""
        infos = self._filesystem.get_file_info(pyarrow.fs.FileSelector(self._in(_SHARDS), allow_not_found=True))
        names = {info.path for info in infos}
        # A shard may have been written twice: the files that were counted are the first.
        for info in sorted(infos, key=lambda info: info.path):
            found = _SCORES.search(info.path)
            if found and info.path.removesuffix("l") in names:
                part = self._in(f"part-{found[1]}.jsonl")
                if self._filesystem.get_file_info(part).type == pyarrow.fs.FileType.NotFound:
                    self._filesystem.move(info.path, part)
        for folder in (_CHECKPOINT, _SHARDS):
            if self._filesystem.get_file_info(self._in(folder)).type != pyarrow.fs.FileType.NotFound:
                self._filesystem.delete_dir(self._in(folder))

    def _in(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    def _open_text(self, path: str) -> str:
        with self._filesystem.open_input_file(path) as file:
            text: bytes = file.read()
        return text.decode()

    def _read(self, name: str) -> str | None:
        if self._filesystem.get_file_info(self._in(name)).type == pyarrow.fs.FileType.NotFound:
            return None
        return self._open_text(self._in(name))

    def _write(self, name: str, text: str) -> None:
        _put(self._filesystem, self._in(name), text.encode())


def _put(filesystem: Any, path: str, content: bytes) -> None:
    """Writes a file that is whole from the moment that it has its name."""
    part = f"{path}.{uuid.uuid4().hex}.part"
    with filesystem.open_output_stream(part) as file:
        file.write(content)
    filesystem.move(part, path)


class _Commits(IdColumnCheckpointManager):
    """Undoes what was written and not committed. The source has only the shards that are not written, so Ray need not
    start actors to filter them.
    """

    def load_checkpoint(self, data_file_dir: str | None = None, data_file_filesystem: Any = None) -> tuple[None, int]:
        self._clean_pending_checkpoints(data_file_dir, data_file_filesystem)
        return None, 0


class _Lock:
    """An actor that only has a name."""


class _Shards(Datasource):
    """The shards, a row each."""

    def __init__(self, shards: list[Shard]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._shards = shards

    def estimate_inmemory_data_size(self) -> int:
        return 24 * len(self._shards)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: DataContext | None = None
    ) -> list[ReadTask]:
        def task(shard: Shard) -> ReadTask:
            row = {"shard": [shard.number], "first": [shard.first], "end": [shard.end]}
            return ReadTask(lambda: [pyarrow.table(row)], BlockMetadata(1, 24, None, None))

        return [task(shard) for shard in self._shards]


class ShardScorer:
    """A worker."""

    def __init__(self, recipe: Recipe, files: Files, columns: Mapping[str, str]) -> None:
        self._scorer = recipe.open()
        self._reader = ShardReader(files, columns)
        self._columns = columns

    def __call__(self, shards: pyarrow.Table) -> pyarrow.Table:
        scored = [self._scored(Shard(row["shard"], row["first"], row["end"])) for row in shards.to_pylist()]
        return pyarrow.table(
            {
                "shard": shards["shard"],
                "lines": pyarrow.array([lines for lines, _ in scored], pyarrow.large_binary()),
                "summary": [summary.to_json() for _, summary in scored],
            }
        )

    def _scored(self, shard: Shard) -> tuple[bytes, Summary]:
        first, batches = self._reader.read(shard)
        summary, lines = Summary(first), []
        for scored in self._scorer.score_batches(batches, first=first, columns=self._columns):
            summary.add(scored)
            lines.append(scored.to_json_lines())
        return b"".join(lines), summary


class _Scores(BlockBasedFileDatasink):
    """Writes the scores of a shard as a file, and their summary beside it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, file_format="jsonl")

    def write_block(self, block: BlockAccessor, block_index: int, ctx: Any) -> None:
        # Ray looks for files whose names begin so, if it must undo the write.
        task = self.filename_provider.get_filename_for_task(ctx.kwargs["write_uuid"], ctx.task_idx)
        for row in block.to_arrow().to_pylist():
            path = posixpath.join(self.path, f"{task.removesuffix('.jsonl')}-{row['shard']:09}")
            _put(self.filesystem, f"{path}.json", row["summary"].encode())
            _put(self.filesystem, f"{path}.jsonl", row["lines"])
