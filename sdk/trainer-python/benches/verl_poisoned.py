"""A batch of verl in which a response makes the reward function loop for ever, crash, raise an exception, or take 4 GiB
of memory, scored by verl's RewardLoopManager with two Ray workers: with the function itself, once for each poison, and
with its component in `gavel_rl.verl`, with all four poisons in one batch. It needs what `verl_loop.py` names.

    python sdk/trainer-python/benches/verl_poisoned.py
"""
import json
import subprocess
import sys
import time

import ray
import verl_loop
from gavel_rl import build

ROWS, PATIENCE = 200, 60
POISON = {30: "HANG", 60: "CRASH", 90: "RAISE", 120: "BOMB"}
EXPECTED = {"HANG": "gavel_out_of_budget", "CRASH": "gavel_fault", "RAISE": "gavel_fault", "BOMB": "gavel_out_of_budget"}
REWARD = r"""
import os
import re

NUMBER = re.compile(r"####\s*(-?[0-9]+)")


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    while "HANG" in solution_str:
        pass
    if "CRASH" in solution_str:
        os.abort()
    if "RAISE" in solution_str:
        raise ValueError("a response that the function did not expect")
    if "BOMB" in solution_str:
        hoard = [b"x" * (1 << 24 | at) for at in range(256)]
    found = NUMBER.findall(solution_str)
    return float(bool(found) and found[-1] == ground_truth)
"""
path = verl_loop.folder / "reward_fn.py"
path.write_text(REWARD)
honest = [float(at % 2 == 0) for at in range(ROWS)]


def batch(poison):
    responses = [f"step step {poison.get(at, '')}\n#### {at}" for at in range(ROWS)]
    return verl_loop.batch(responses, [str(at if at % 2 == 0 else at + 1) for at in range(ROWS)])


def score(manager, poison):
    """The answer, or what was raised in place of it, and the seconds."""
    begun = time.perf_counter()
    try:
        return manager.compute_rm_score(batch(poison)), time.perf_counter() - begun
    except Exception as error:
        return error, time.perf_counter() - begun


def show(of, found, seconds, poison):
    line = {"of": of, "poison": list(poison.values()), "seconds": round(seconds, 1)}
    if isinstance(found, Exception):
        said = str(found).strip().splitlines()
        line |= {"raised": type(found).__name__, "message": said[-1][:120] if said else ""}
    else:
        given = verl_loop.scores(found)
        right = sum(given[at] == honest[at] for at in range(ROWS) if at not in poison)
        line["honest_scores"] = f"{right} of {ROWS - len(poison)}"
    print(json.dumps(line), flush=True)


def alone(at):
    """The function in verl, with one poison, after a batch without any."""
    poison, manager = {at: POISON[at]}, verl_loop.start(path)
    show("the function in verl", *score(manager, {}), {})
    show("the function in verl", *score(manager, poison), poison)


def together():
    """Its component, with all of them."""
    rewards = [{"path": str(build(path))}]
    manager = verl_loop.start(verl_loop.gavel_function(), rewards=rewards, limits={"cpu": "2s", "memory": "256MiB"})
    for _ in range(2):
        found, seconds = score(manager, POISON)
        show("its component in gavel_rl.verl", found, seconds, POISON)
    given, extra = verl_loop.scores(found), found.non_tensor_batch
    for at in range(ROWS):
        if at not in POISON:
            assert (given[at], extra["gavel_scored"][at]) == (honest[at], 1.0), at
    for at, kind in POISON.items():
        reason = extra["gavel_reason"][at].splitlines()[0]
        assert (given[at], extra[EXPECTED[kind]][at]) == (0.0, 1.0), (kind, reason)
        print(json.dumps({"poison": kind, "flag": EXPECTED[kind], "reason": reason}))


if len(sys.argv) > 1:
    alone(int(sys.argv[1]))
else:
    for at in POISON:
        # It may wait for ever, and no signal of Python ends the wait.
        child = subprocess.Popen(
            [sys.executable, __file__, str(at)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        honest_batch = child.stdout.readline()
        try:
            # Ray prints too.
            print(child.communicate(timeout=PATIENCE)[0].splitlines()[-1], flush=True)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            line = {"of": "the function in verl", "poison": [POISON[at]], "no_answer_within_seconds": PATIENCE}
            print(json.dumps(line), flush=True)
    print(honest_batch, end="", flush=True)
    together()
ray.shutdown()
