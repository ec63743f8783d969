"""Writes rows of every family of reasoning-gym with answers and the package's own scores.

The rows are the same each time, except that those of `time_intervals` begin today.

    pip install reasoning-gym==0.1.25 pyarrow
    PYTHONHASHSEED=0 python tests/parity/reasoning_gym_rows.py      # writes tests/parity/reasoning-gym.parquet

`host/scoring/tests/scoring/reasoning_gym.rs` scores the same rows with the component `reasoning-gym` and compares.
"""

import json
import os
import random
from collections import deque
from pathlib import Path
from random import Random

import pyarrow
import pyarrow.parquet as parquet
import reasoning_gym
from reasoning_gym.factory import DATASETS
from reasoning_gym.games.rush_hour import BOARD_SIZE, TARGET, Board
from reasoning_gym.utils import extract_answer

ROWS = 50
FILE = Path(__file__).parent / "reasoning-gym.parquet"

# The families that the component does not have; its page gives the reasons.
ABSENT = {
    "advanced_geometry", "arc_agi", "boxnet", "codeio", "composite", "countdown", "game_of_life",
    "game_of_life_halting", "knights_knaves", "manipulate_matrix", "number_sorting", "pool_matrix", "rubiks_cube",
    "sokoban", "survo", "zebra_puzzles",
}  # fmt: skip


def slides(entry):
    """Moves that free the car of a `rush_hour` board: the shortest, found breadth first."""
    board = Board(entry["metadata"]["board_config"])
    pieces = [(piece.size, piece.stride, piece.fixed) for piece in board._pieces]
    start = tuple(piece.position for piece in board._pieces)
    came, queue = {start: None}, deque([start])
    while queue:
        state = queue.popleft()
        if state[0] == TARGET:
            moves = []
            while came[state]:
                state, move = came[state]
                moves.insert(0, move)
            return " ".join(moves)
        taken = {at + step * stride for at, (size, stride, _) in zip(state, pieces) for step in range(size)}
        for index, (size, stride, fixed) in enumerate(pieces):
            for step, edge in ((1, state[index] + size * stride), (-1, state[index] - stride)):
                inside = 0 <= edge < BOARD_SIZE**2 and (stride > 1 or edge // BOARD_SIZE == state[index] // BOARD_SIZE)
                after = (*state[:index], state[index] + step * stride, *state[index + 1 :])
                if inside and not fixed and edge not in taken and after not in came:
                    came[after] = state, f"{chr(ord('A') + index)}{step:+d}"
                    queue.append(after)
    raise SystemExit(f"no way out of {entry['metadata']['board_config']}")


# An answer for the families whose rows have none: there are several.
MADE = {
    "graph_color": lambda entry: json.dumps(entry["metadata"]["possible_answer"]),
    "propositional_logic": lambda entry: entry["metadata"]["example_answer"],
    "rush_hour": slides,
}

WRAPPED = ["<answer>{}</answer>", "<think>First …</think>\n<answer>\n{}\n</answer>", "It is <answer> {} </answer>."]


def wrong(rng, answer, other):
    """A plausible answer that is wrong, or almost right."""
    words = answer.split()
    return rng.choice(
        [
            lambda: other,
            lambda: answer + " " + other,
            lambda: answer[: len(answer) // 2],
            lambda: " ".join(rng.sample(words, len(words))),
            lambda: answer.replace("1", "2"),
            lambda: answer.upper() if answer != answer.upper() else answer.lower(),
            lambda: answer[::-1],
            lambda: f"The answer is {answer}.",
            lambda: str(rng.randrange(-50, 1000)),
        ]
    )()


def malformed(rng, answer):
    """A response without an answer of the requested kind."""
    return rng.choice(
        [
            "<answer></answer>", "<answer> </answer>", answer, "<answer>" + answer, "I do not know.", "",
            "<answer>{'a': [1, 2</answer>", "<answer>[1, 2, 3]</answer>", "<answer>[[1, 0], [0, 1]]</answer>",
            "<answer>None</answer>", "<answer>\u4e2d\u6587 \U0001f642 \u0663</answer>", "<answer>x = = 3 ) (</answer>",
            "<answer>nan</answer>", "<answer>-1e999</answer>", f"<answer>{answer * 20}</answer>",
            f"<answer>{list(answer)}</answer>", f"<answer>{json.dumps(answer)}</answer>",
        ]
    )  # fmt: skip


def rows(family):
    rng = Random(family)
    # A few functions of `list_functions` draw from Python's own generator.
    random.seed(7)
    dataset = reasoning_gym.create_dataset(family, seed=7, size=ROWS)
    entries = [dataset[index] for index in range(ROWS)]
    answers = [str(MADE[family](entry) if family in MADE else entry["answer"]) for entry in entries]
    for index, entry in enumerate(entries):
        answer, other = answers[index], answers[index - 1]
        kind = ("right", "wrong", "right", "malformed")[index % 4]
        response = malformed(rng, answer) if kind == "malformed" else None
        if response is None:
            given = answer if kind == "right" else wrong(rng, answer, other)
            response = rng.choice(WRAPPED).format(given)
        try:
            score = float(dataset.score_answer(extract_answer(response), entry))
        except Exception:
            # The scorer of the family cannot read answers of another kind.
            score = None
        yield {"kind": kind, "response": response, "entry": json.dumps(entry, default=str), "score": score}


def main():
    if os.environ.get("PYTHONHASHSEED") != "0":
        raise SystemExit("set PYTHONHASHSEED=0: some families draw from sets")
    families = sorted(set(DATASETS) - ABSENT)
    found = []
    for family in families:
        for row in rows(family):
            found.append({"family": family, **row})
    columns = {name: [row[name] for row in found] for name in found[0]}
    parquet.write_table(pyarrow.table(columns), FILE, compression="zstd", compression_level=19)
    full, none = (columns["score"].count(score) for score in (1, None))
    size = FILE.stat().st_size // 1024
    print(f"{FILE.name}: {len(found)} rows of {len(families)} families, {full} right, {none} raise, {size} KiB")


main()
