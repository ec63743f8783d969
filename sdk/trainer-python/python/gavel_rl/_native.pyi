"""The extension module."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

Kind: TypeAlias = Literal["scored", "abstained", "fault", "out-of-budget", "unavailable"]

class GavelError(Exception):
    """A reward cannot be loaded, or a scorer cannot be used."""

@final
class Credit:
    """Credit for a part of a response: the bytes `start` to `end` of the text of one message of one trajectory."""

    @property
    def trajectory(self) -> int: ...
    @property
    def message(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def value(self) -> float: ...

@final
class Evaluation:
    """One call of one reward: its outcome, what it used, and what it was called with."""

    @property
    def name(self) -> str:
        """The reward's name."""
    @property
    def kind(self) -> Kind:
        """`scored`, `abstained`, `fault`, `out-of-budget` or `unavailable`."""
    @property
    def score(self) -> float | None:
        """The score; None unless it scored."""
    @property
    def metrics(self) -> dict[str, float]:
        """Named numbers beside the score."""
    @property
    def credit(self) -> list[Credit]:
        """Credit for parts of the response."""
    @property
    def note(self) -> str | None:
        """The reward's note on its score."""
    @property
    def reason(self) -> str | None:
        """Why there is no score."""
    @property
    def budget(
        self,
    ) -> Literal["deadline", "cpu", "memory", "stack", "fuel", "output", "log", "requests", "handles"] | None:
        """The budget that the call exceeded."""
    @property
    def fault(self) -> Literal["trap", "plugin", "input", "host"] | None:
        """The kind of fault."""
    @property
    def caused_by(self) -> Literal["response", "plugin", "unknown"] | None:
        """Who caused the failure or abstention."""
    @property
    def elapsed(self) -> float:
        """Seconds on a processor and in waits for the host."""
    @property
    def cpu(self) -> float:
        """Seconds on a processor."""
    @property
    def latency(self) -> float | None:
        """Seconds from when the call could start until it answered. None in an outcome that was pickled."""
    @property
    def fuel(self) -> int | None:
        """Instructions, if `fuel` is limited."""
    @property
    def peak_memory(self) -> int:
        """The most bytes of memory that the call had."""
    @property
    def backtrace(self) -> list[str]:
        """The reward's functions at a trap, the innermost first."""
    @property
    def stderr(self) -> str:
        """The end of what the reward printed."""
    @property
    def component_hash(self) -> str | None:
        """BLAKE3 of the component, in hexadecimal."""
    @property
    def params_hash(self) -> str | None:
        """BLAKE3 of the parameters, in hexadecimal."""
    @property
    def input_hash(self) -> str | None:
        """BLAKE3 of what the reward saw, in hexadecimal."""
    @property
    def contract(self) -> str | None:
        """The contract between the component and its host."""
    @property
    def seed(self) -> int | None:
        """The seed of the random numbers that the reward saw."""

@final
class Outcome:
    """The outcome of a row, from all rewards together."""

    @property
    def id(self) -> str | None:
        """The id of the row; None for a row that cannot be read."""
    @property
    def reward(self) -> float | None:
        """The weighted sum of the scores; None unless every reward that has a weight scored."""
    @property
    def kind(self) -> Kind:
        """`scored`, or the kind of the first reward that did not score."""
    @property
    def reason(self) -> str | None:
        """Why there is no reward."""
    @property
    def lowest_reward(self) -> float | None:
        """The least reward that the response can have, if it exhausted a budget of a reward or made it abstain."""
    @property
    def rewards(self) -> dict[str, Evaluation]:
        """Each reward's call, by the reward's name."""
    @property
    def not_called(self) -> dict[str, Literal["gate", "no-gate", "data-source"]]:
        """The rewards that were not called, and why."""
    def to_json(self) -> str:
        """The line that `gavel score` writes for it."""
    @classmethod
    def from_json(cls, line: str) -> Outcome:
        """The outcome of such a line."""

@final
class ScoredBatch:
    """The outcomes of a record batch. Libraries of Arrow take their columns: `pyarrow.record_batch(batch)`."""

    @property
    def outcomes(self) -> list[Outcome]:
        """An outcome for each row."""
    def to_json_lines(self) -> bytes:
        """The lines that `gavel score` writes for the rows."""
    def __len__(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Inbox:
    def __init__(self) -> None: ...
    def fileno(self) -> int: ...
    def take(self) -> list[tuple[int, list[Outcome]]]: ...

@final
class Call:
    def cancel(self) -> None: ...

@final
class Scorer:
    def __init__(self, config: str) -> None: ...
    def score(self, rows: Iterable[Mapping[str, Any]]) -> list[Outcome]: ...
    def judge(self, rows: Sequence[Mapping[str, Any]]) -> list[Outcome]: ...
    def score_batches(self, parts: Iterator[object], before: int, names: str) -> Iterator[ScoredBatch]: ...
    def has_judgers(self) -> bool: ...
    def ask_for_turns(self, courier: Courier) -> None: ...
    def start(self, inbox: Inbox, number: int, row: Mapping[str, Any]) -> Call: ...
    def start_group(self, inbox: Inbox, number: int, rows: Sequence[Mapping[str, Any]]) -> Call: ...
    def close(self) -> None: ...

@final
class Courier:
    def __init__(self) -> None: ...
    def take(self, seconds: float) -> bytes | None: ...
    def bring(self, numbers: list[int]) -> None: ...
    def report_again(self) -> None: ...

@final
class Turns:
    def __init__(self, limiters: str) -> None: ...
    def report(self, process: str, events: bytes) -> None: ...
    def given(self, seconds: float) -> list[tuple[str, int]]: ...
    def forget(self, process: str) -> None: ...

@final
class GoldenCases:
    def __init__(self, plugin: str, cases: str | None, params: str | None, environment: str) -> None: ...
    @property
    def path(self) -> Path: ...
    def names(self) -> list[tuple[str, int]]: ...
    def run(self, index: int) -> str | None: ...

def build(file: str, name: str | None, requirements: str | None, output: Path, environment: str) -> str: ...
def compile_with(program: str, arguments: list[str]) -> None: ...
def compile_component(order: str) -> int: ...
