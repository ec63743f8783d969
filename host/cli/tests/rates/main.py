from gavel import Message, Reference, Sample, Score, reward, reward_models


@reward
def score(sample: Sample, reference: Reference) -> Score:
    if sample.extra is not None:
        states = [sample.trajectories[0].state(tool) for tool in ("shop", "other")]
        return Score(1, payload={"extra": sample.extra, "states": states})

    def conversation(text: str) -> list[Message]:
        return [*sample.prompt, Message("assistant", [text])]

    full, empty = reward_models.score_all("quality", [conversation(sample.response), conversation("")])
    steps = reward_models.score_steps("quality", conversation(sample.response)).steps
    return Score(full - empty, {"steps": len(steps), "last": steps[-1].value, "end": steps[-1].end})
