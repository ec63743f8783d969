from gavel import Abstained, NoVerdict, PriorVerdict, Sample, Score, Verdict, judger


@judger
def judge(samples: list[Sample]) -> list[Verdict]:
    return [echo(sample.verdict("quality")) for sample in samples]


def echo(said: PriorVerdict | None) -> Verdict:
    if isinstance(said, Score):
        return Score(said.value, {**said.metrics, "note": len((said.note or "").encode())})
    if isinstance(said, Abstained):
        return said
    if said is None:
        return -1.0
    return -2.0 if isinstance(said, NoVerdict) else -3.0
