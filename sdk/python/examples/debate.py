"""An agent in which the policy argues with itself. Two speakers answer in turns,
each after it has read the other's answer."""

from __future__ import annotations

from dataclasses import dataclass

from gavel import Task, agent, policy


@dataclass
class Params:
    rounds: int = 2
    """The number of rounds, in which both speak."""

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"`rounds` must be at least 1, not {self.rounds}")


@agent(pure=True)
def attempt(task: Task, params: Params) -> str:
    speakers = [policy.Conversation(task.prompt, speaker=name) for name in ("first", "second")]
    said = _speak(speakers)
    for _ in range(params.rounds - 1):
        for speaker, heard in zip(speakers, reversed(said)):
            speaker.append(
                f"Somebody else answers:\n\n{heard}\n\nSay where they are wrong or you were, and answer again."
            )
        said = _speak(speakers)
    return said[0]


def _speak(speakers: list[policy.Conversation]) -> list[str]:
    """Lets both speak at the same time."""
    turns = policy.generate_all(speakers)
    for turn in turns:
        if isinstance(turn, Exception):
            raise turn
    return [turn.text for turn in turns if isinstance(turn, policy.Turn)]
