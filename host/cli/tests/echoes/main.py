import json
import urllib.request

from gavel import Abstained, NoVerdict, PriorVerdict, Reference, Sample, Score, Trajectory, Verdict, http, judger, programs


@judger
def judge(samples: list[Sample], reference: Reference) -> list[Verdict]:
    do = reference.get("do")
    return [echo(sample, sample.verdict("quality")) if do is None else Score(1, note=DONE[do](sample.response)) for sample in samples]


def of(each: Trajectory) -> int:
    turn = each.turn_finish_reason(0) is not None or each.message_tokens(0) is not None
    parts = len(each.speaker) + len(each.functions) + len(each.calls) + len(each.opening)
    return parts + turn + (each.state("shop") is not None)


def echo(sample: Sample, said: PriorVerdict | None) -> Verdict:
    if isinstance(said, Score):
        # Counts what the trace has; without an agent and a policy, only the prompt.
        seen = sum(map(of, sample.trajectories)) + (sample.extra is not None)
        metrics = {**said.metrics, "note": len((said.note or "").encode()), "seen": seen}
        return Score(said.value, metrics, payload={"é": [said.value]})
    if isinstance(said, Abstained):
        return said
    if said is None:
        return -1.0
    return -2.0 if isinstance(said, NoVerdict) else -3.0


def seen(response: http.Response) -> str:
    return f"{response.status} {len(response.content)} {sum(response.content)} {response.text[:30]}"


def get(url: str) -> str:
    return seen(http.get(url))


def impatient(url: str) -> str:
    return seen(http.get(url, timeout=0.3))


def post(url: str) -> str:
    return seen(http.post(url, json={"a": "ü"}, headers={"x-a": "1"}).raise_for_status())


def both(url: str) -> str:
    return " ".join(seen(response) for response in http.send_all([http.Request("GET", url)] * 2))


def run(code: str) -> str:
    job = programs.Job("python", [json.dumps({"code": code})], "7", cpu_ms=500)
    return " ".join(f"{output.ok} {output.text.strip()}".lower().strip() for output in programs.run_all([job] * 2))


def opened(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return f"{response.status} {response.url.rpartition('/')[2]} {response.read().decode()}"


DONE = {"get": get, "impatient": impatient, "post": post, "both": both, "run": run, "opened": opened}
