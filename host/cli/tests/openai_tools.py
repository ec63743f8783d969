"""Asks a model that learned one call with the official client: `openai_tools.py BASE_URL MODEL`."""

import json
import sys

import openai

base_url, model = sys.argv[1:]
client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600)
integer = {"type": "integer"}
parameters = {"type": "object", "properties": {"a": integer, "b": integer}}
tools = [{"type": "function", "function": {"name": "add", "parameters": parameters}}]
messages = [{"role": "user", "content": "2 + 3?"}]


def chat(**options):
    return client.chat.completions.create(model=model, temperature=0, **{"messages": messages, "tools": tools, **options})


# Streamed, and put together by the client's helper.
with client.chat.completions.stream(model=model, temperature=0, messages=messages, tools=tools) as stream:
    streamed = stream.get_final_completion().choices[0]
choice = chat().choices[0]
assert streamed.message.role == "assistant" and streamed.finish_reason == "tool_calls", streamed
assert streamed.message.tool_calls[0].function.arguments == choice.message.tool_calls[0].function.arguments, streamed
assert choice.finish_reason == "tool_calls" and choice.message.content == "I add.", choice
[call] = choice.message.tool_calls
assert call.function.name == "add" and json.loads(call.function.arguments) == {"a": 2, "b": 3}, call

# Streamed, the call is the same, and its finish reason says that it is a call.
deltas = [chunk.choices[0] for chunk in chat(stream=True)]
[streamed] = [part for delta in deltas for part in delta.delta.tool_calls or []]
assert streamed.index == 0 and streamed.id == call.id and streamed.type == "function", streamed
assert (streamed.function.name, streamed.function.arguments) == (call.function.name, call.function.arguments)
assert "".join(delta.delta.content or "" for delta in deltas) == "I add."
assert [delta.finish_reason for delta in deltas if delta.finish_reason] == ["tool_calls"]

# There is no call if calls are off, or if a stop text comes before it.
for refused in [{"tools": openai.NOT_GIVEN}, {"tool_choice": "none"}]:
    assert chat(**refused).choices[0].message.tool_calls is None
assert chat(stop=["add"]).choices[0].message.content == "I "

# With a tool choice, every reply is a call, also of a tool that the model did not learn.
say = {"type": "object", "properties": {"word": {"enum": ["yes", "no"]}, "loud": {"type": "boolean"}},
       "required": ["word"], "additionalProperties": False}
# Every call of these ends soon.
closed = {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"enum": [3, 4]}}, "required": ["a", "b"],
          "additionalProperties": False}
# Without white space where it may stand or not.
short = {"max_tokens": 300, "logit_bias": {str(3 + ord(space)): -50 for space in " \n\r\t"}}
both = [{"type": "function", "function": {"name": name, "parameters": arguments}}
        for name, arguments in [("add", closed), ("say", say)]]


def called(**options):
    choice = chat(tools=both, **short, **options).choices[0]
    assert choice.finish_reason == "tool_calls" and not choice.message.content, choice
    return [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]


function = {"type": "function", "function": {"name": "say"}}
for seed in range(3):
    [(name, arguments)] = called(tool_choice=function, seed=seed)
    assert name == "say" and arguments["word"] in ("yes", "no"), (name, arguments)
for name, arguments in called(tool_choice="required"):
    assert set(arguments) == {"a", "b"} if name == "add" else name == "say", (name, arguments)
# Only tools that are allowed are called, and one call is told where several are not wanted.
allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function]}}
for seed in range(3):
    calls = called(tool_choice=allowed, seed=seed)
    assert calls and all(name == "say" for name, _ in calls), calls
    assert called(tool_choice=allowed, seed=seed, parallel_tool_calls=False) == calls[:1]
deltas = [chunk.choices[0] for chunk in chat(tools=both, tool_choice=function, stream=True, **short)]
[streamed] = [part for delta in deltas for part in delta.delta.tool_calls or []]
assert streamed.function.name == "say" and json.loads(streamed.function.arguments)["word"] in ("yes", "no"), streamed
for options, why in [
    ({"tool_choice": {"type": "function", "function": {"name": "sub"}}}, "there is no tool `sub`"),
    ({"tool_choice": "always"}, "`tool_choice` must be"),
    ({"tool_choice": allowed}, 'allows "say", which is not in `tools`'),
    ({"tool_choice": "required", "response_format": {"type": "json_object"}}, "do not go together"),
]:
    try:
        chat(**options)
    except openai.BadRequestError as error:
        assert why in str(error), error
    else:
        raise AssertionError(f"{options} were taken")

# The call and its result go back, and later calls have other ids.
result = {"role": "tool", "tool_call_id": call.id, "content": "5"}
again = chat(messages=[*messages, choice.message.model_dump(exclude_none=True), result, *messages])
assert all(more.id != call.id for more in again.choices[0].message.tool_calls or [])
