"""The tasks of reasoning-gym, and its scorers as a reward."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

# Imported first, so that the package loads without the parts that a component cannot contain.
import families
from answers import guard
from gavel import InvalidInput, Reference, Sample, Score, Verdict, abstain, reward, taskset
from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.utils import SYSTEM_PROMPTS, extract_answer

VERSION = "0.1.25"
NOTE_LENGTH = 200

# These families draw from the seed when they are made. The others then read their words, which takes longer than a row.
DRAWN_FIRST = ("acre", "gsm_symbolic", "list_functions")


@dataclass
class Params:
    """The parameters that a run may set, for the rows and for the form of an answer."""

    name: str = ""
    """The family whose rows the taskset has."""
    size: int = 500
    """The number of rows."""
    config: dict[str, Any] = field(default_factory=dict)
    """The family's own configuration."""
    system: str = "default"
    """The system prompt: the name of one of the package's, or a text; none if it is empty."""
    tag: str = "answer"
    """The tag around the answer; if it is empty, the whole response is the answer."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError("`size` must be more than 0")
        self.dataset = families.dataset(self.name, self.config, size=self.size) if self.name else None


@taskset(length=lambda params: params.size, version=VERSION)
def row(index: int, seed: int, params: Params) -> dict[str, Any]:
    if params.dataset is None:
        raise InvalidInput('name a family, such as "plugin:reasoning-gym?name=chain_sum"')
    dataset = params.dataset
    if params.name in DRAWN_FIRST:
        dataset = families.dataset(params.name, params.config, seed, params.size)
    dataset.seed = seed
    # A few functions of `list_functions` draw from Python's own generator.
    random.seed(seed + index)
    entry = dataset[index]
    system = SYSTEM_PROMPTS.get(params.system, params.system)
    return {
        "data_source": f"reasoning-gym/{params.name}",
        "prompt": [
            *([{"role": "system", "content": system}] if system else []),
            {"role": "user", "content": entry["question"]},
        ],
        "ground_truth": entry["answer"],
        # No scorer uses values that JSON does not have, such as a fraction.
        "entry": json.loads(json.dumps(entry, default=str)),
        "config": params.config,
    }


@reward(score_range=(0, 1), version=VERSION)
def score(sample: Sample, reference: Reference, params: Params) -> Verdict:
    entry = reference["entry"]
    try:
        family = entry["metadata"]["source_dataset"]
        config = reference.get("config") or {}
        dataset = families.dataset(family, config) if config else families.usual(family)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"`entry` is not a row of reasoning-gym: {error}") from None
    if family == "rearc":
        # It compares boards as tuples; in JSON there are only lists.
        entry["metadata"]["output"] = tuple(map(tuple, entry["metadata"]["output"]))
    answer = extract_answer(sample.response, params.tag) if params.tag else sample.response.strip()
    note = "no answer" if answer is None else f"the answer is {answer:.{NOTE_LENGTH}}"
    try:
        value, unreadable = dataset.score_answer(answer, entry), False
    except RecursionError as error:
        return abstain(f"the scorer gave up: {error}")
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        # Most scorers give 0 to an answer that they cannot read; some raise.
        refuse_row(dataset, entry)
        value, unreadable = 0.0, True
        note += f"; the scorer of `{family}` cannot read it: {error!r:.{NOTE_LENGTH}}"
    return Score(value, {"answered": answer is not None, "unreadable": unreadable}, note)


def refuse_row(dataset: ProceduralDataset, entry: dict[str, Any]) -> None:
    """Raises InvalidInput if the scorer cannot read the row, as opposed to the
    answer: then it cannot read the row's own answer either."""
    try:
        dataset.score_answer(str(entry["answer"]), entry)
    except Exception as error:
        raise InvalidInput(f"`entry` is not a row that its scorer can read: {error!r}") from None


families.warm_up()
guard()
