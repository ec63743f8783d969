from gavel import Answer, Task, agent, policy


@agent
def attempt(task: Task) -> Answer:
    """Returns an object beside an answer of several words."""
    said = policy.Conversation(task.prompt).generate().text
    return Answer(said, {"plan": [1.5, None], "é": len(said)} if " " in said else None)
