"""Asks a server with the official client: `openai_client.py BASE_URL MODEL`.

Prints the greedy answer to a fixed prompt as the last line.
"""

import concurrent.futures
import json
import math
import re
import sys
import typing

import openai
import pydantic

base_url, model = sys.argv[1:]
client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600)
messages = [{"role": "system", "content": "Say letters."}, {"role": "user", "content": "Grüße 😀"}]


def chat(**options):
    return client.chat.completions.create(**{"model": model, "messages": messages, "max_tokens": 24, **options})


def refused(kind, part, call, **options):
    try:
        call(**options)
    except kind as error:
        assert part in str(error), error
        return
    raise AssertionError(f"{options} were taken")


assert [found.id for found in client.models.list()] == [model] and client.models.retrieve(model).id == model

# The same seed gives the same answer, whole or streamed; another seed gives another.
whole = chat(seed=7)
again = chat(seed=7)
choice = whole.choices[0]
assert choice.message.role == "assistant" and choice.finish_reason in ("stop", "length"), choice
assert choice.message.content == again.choices[0].message.content
assert any(chat(seed=seed).choices[0].message.content != choice.message.content for seed in (8, 9))
assert chat().id != whole.id
usage = whole.usage
assert 0 < usage.completion_tokens <= 24 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
pieces, reasons, counted = [], [], None
for chunk in chat(seed=7, stream=True, stream_options={"include_usage": True}):
    for part in chunk.choices:
        pieces.append(part.delta.content or "")
        reasons += [part.finish_reason] if part.finish_reason else []
    counted = chunk.usage or counted
assert "".join(pieces) == choice.message.content, (pieces, choice.message.content)
assert reasons == [choice.finish_reason] and counted == usage, (reasons, counted, usage)
assert len(pieces) > 3

# Several answers, each with its own seed.
several = chat(seed=7, n=3)
assert [part.index for part in several.choices] == [0, 1, 2]
assert several.choices[0].message.content == choice.message.content
assert len({part.message.content for part in several.choices}) > 1
streamed = ["", "", ""]
for chunk in chat(seed=7, n=3, stream=True):
    for part in chunk.choices:
        streamed[part.index] += part.delta.content or ""
assert streamed == [part.message.content for part in several.choices]

# Log-probabilities: at temperature 0 the token is the most probable one.
told = chat(temperature=0, logprobs=True, top_logprobs=3).choices[0].logprobs.content
assert told and all(abs(part.top_logprobs[0].logprob - part.logprob) < 1e-5 for part in told)
assert all(len(part.top_logprobs) == 3 for part in told)
greedy = chat(temperature=0).choices[0].message.content
assert b"".join(bytes(part.bytes) for part in told).decode(errors="replace") == greedy
streamed = [part for chunk in chat(temperature=0, logprobs=True, stream=True) for part in chunk.choices]
assert [part.logprob for one in streamed if one.logprobs for part in one.logprobs.content] == [
    part.logprob for part in told
]

# Stop texts are not part of the answer; a bias decides the answer.
middle = greedy[len(greedy) // 2]
stopped = chat(temperature=0, stop=[middle]).choices[0]
assert stopped.message.content == greedy[: greedy.index(middle)] and stopped.finish_reason == "stop", stopped
pieces = [part.delta.content or "" for chunk in chat(temperature=0, stop=middle, stream=True) for part in chunk.choices]
assert "".join(pieces) == stopped.message.content
# Byte b is token 3 + b.
biased = chat(temperature=0, logit_bias={str(3 + ord("z")): 100}, max_tokens=5).choices[0]
assert biased.message.content == "zzzzz" and biased.finish_reason == "length", biased
# Token 2 ends a text.
ended = chat(temperature=0, logit_bias={"2": 100}).choices[0]
assert ended.message.content == "" and ended.finish_reason == "stop", ended

# Cuts that leave one token take the most probable one; cuts that leave all tokens change nothing.
for one in ({"top_p": 1e-6}, {"extra_body": {"top_k": 1}}, {"extra_body": {"min_p": 1.0}}):
    assert all(chat(seed=seed, **one).choices[0].message.content == greedy for seed in (7, 8)), one
every = chat(seed=7, top_p=1.0, extra_body={"top_k": 259, "min_p": 0.0})
assert every.choices[0].message.content == choice.message.content
# A penalty leaves a hundredth of its bias to a token that was drawn. The prompt has neither letter.
twice = {str(3 + ord("z")): 100, str(3 + ord("q")): 50}
penalised = chat(temperature=0, logit_bias=twice, max_tokens=2, extra_body={"repetition_penalty": 100})
assert penalised.choices[0].message.content == "zq", penalised
# Penalties on what was said add up to more than the bias: the first letter does not stay.
bias = {str(3 + ord("z")): 50, str(3 + ord("y")): 46}
assert set(chat(temperature=0, logit_bias=bias, max_tokens=12).choices[0].message.content) == {"z"}
for penalty in [{"frequency_penalty": 1}, {"frequency_penalty": 0.5, "presence_penalty": 2}]:
    assert set(chat(temperature=0, logit_bias=bias, max_tokens=12, **penalty).choices[0].message.content) == {"y", "z"}
# A reward for what was said keeps it, and a penalty of the same size does not.
bias = {str(3 + ord("z")): 50, str(3 + ord("y")): 50}
kept, left = (chat(temperature=0, logit_bias=bias, max_tokens=12, presence_penalty=penalty).choices[0].message.content
              for penalty in (-2, 2))
assert len(set(kept)) == 1 and len(set(left)) == 2, (kept, left)

# Plain completions, of text and of tokens.
text = client.completions.create(model=model, prompt="Once", max_tokens=6, temperature=0, logprobs=2)
ids = client.completions.create(model=model, prompt=[3 + byte for byte in b"Once"], max_tokens=6, temperature=0)
assert text.choices[0].text == ids.choices[0].text and text.usage == ids.usage
assert len(text.choices[0].logprobs.tokens) <= 6 and text.choices[0].logprobs.text_offset[0] == 0
both = client.completions.create(model=model, prompt=["Once", "Twice"], max_tokens=6, temperature=0)
assert both.choices[0].text == text.choices[0].text and len(both.choices) == 2
pieces = client.completions.create(model=model, prompt="Once", max_tokens=6, temperature=0, stream=True)
assert "".join(part.text for chunk in pieces for part in chunk.choices) == text.choices[0].text
counting = {"stream": True, "logprobs": 2, "stream_options": {"include_usage": True}}
pieces = list(client.completions.create(model=model, prompt="Once", max_tokens=6, temperature=0, **counting))
told = [part.logprobs for chunk in pieces for part in chunk.choices if part.logprobs]
assert [token for one in told for token in one.tokens] == text.choices[0].logprobs.tokens
assert [offset for one in told for offset in one.text_offset] == text.choices[0].logprobs.text_offset
assert pieces[-1].usage == text.usage and not pieces[-1].choices

many = client.completions.create(model=model, prompt=["Once"] * 4, max_tokens=20)
assert len({part.text for part in many.choices}) > 1, "prompts share what is random"
cold = client.completions.create(model=model, prompt="Once", max_tokens=6, temperature=0.01, logprobs=20)
assert all(value is not None for top in cold.choices[0].logprobs.top_logprobs for value in top.values())

# How likely a prompt is: for a text that the model wrote, the log-probabilities with which it wrote it.
drawn = client.completions.create(model=model, prompt=[3 + byte for byte in b"Once"], max_tokens=6, temperature=1,
                                  logprobs=0, seed=5, extra_body={"ignore_eos": True})
written = [3 + byte for byte in b"Once"]
while len(written) < 7:
    # The server says which token of which log-probability it drew; ask which one it was.
    place = len(written) - 4
    told = client.completions.create(model=model, prompt=[written + [token] for token in range(259)], max_tokens=1,
                                     extra_body={"prompt_logprobs": 0})
    found = [float(one.model_extra["prompt_logprobs"][-1][str(token)]["logprob"])
             for token, one in enumerate(told.choices)]
    assert abs(sum(math.exp(value) for value in found) - 1) < 1e-3
    wanted = drawn.choices[0].logprobs.token_logprobs[place]
    written.append(min(range(259), key=lambda token: abs(found[token] - wanted)))
    assert abs(found[written[-1]] - wanted) < 1e-3, (place, wanted)
whole = client.completions.create(model=model, prompt=written, max_tokens=1, n=2, extra_body={"prompt_logprobs": 0})
for one in whole.choices:
    of_prompt = one.model_extra["prompt_logprobs"]
    assert of_prompt[0] is None and len(of_prompt) == 7
    own = [of_prompt[4 + place][str(written[4 + place])]["logprob"] for place in range(3)]
    assert all(abs(a - b) < 1e-3 for a, b in zip(own, drawn.choices[0].logprobs.token_logprobs)), own
refused(openai.BadRequestError, "`prompt_logprobs` must be 0", client.completions.create, model=model, prompt="a",
        extra_body={"prompt_logprobs": 2})

# Requests that are not supported are refused with the reason.
refused(openai.BadRequestError, "`best_of`: 2 is not supported", chat, extra_body={"best_of": 2})
assert chat(seed=7, parallel_tool_calls=False).choices[0].message == choice.message
assert chat(seed=7, user="me", extra_body={"skip_special_tokens": True}).choices[0].message == choice.message
refused(openai.BadRequestError, "needs `logprobs`", chat, top_logprobs=2)
refused(openai.BadRequestError, "`stop`: 17 stop texts are more than 16", chat, stop=["a"] * 17)
refused(openai.BadRequestError, "`stop`: it must be a text or a list of texts", chat, extra_body={"stop": 5})
picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
refused(openai.BadRequestError, "only text is supported", chat, messages=[{"role": "user", "content": [picture]}])
developer = [{"role": "developer", "content": "Say letters."}, messages[1]]
assert chat(messages=developer, temperature=0, extra_body={"tools": None}).choices[0].message.content == greedy
refused(openai.NotFoundError, f"`{model}` is", chat, model="gpt-9")
refused(openai.BadRequestError, "positions", chat, max_tokens=100_000)
refused(openai.BadRequestError, "`temperature`", chat, temperature=-1)
refused(openai.BadRequestError, "`presence_penalty` must be from -2 to 2", chat, presence_penalty=2.5)
refused(openai.BadRequestError, "`messages` is empty", chat, messages=[])
refused(openai.BadRequestError, "unknown variant", chat, messages=[{"role": "robot", "content": "x"}])
refused(openai.NotFoundError, "no such path", client.embeddings.create, model=model, input="x")

# Grammars: the model is random, so that only they give its answers a form. A bias ends texts and lists early, and leaves
# out white space.
ends = {str(3 + ord(mark)): bias for mark, bias in (*((mark, -50) for mark in " \n\r\t"), ('"', 8), ("}", 6), ("]", 6))}


def bound(most=160, **options):
    choice = chat(max_tokens=most, logit_bias=ends, **options).choices[0]
    assert choice.finish_reason == "stop", choice
    return choice.message.content


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


person = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
for seed in range(5):
    answer = json.loads(bound(seed=seed, response_format=schema_format(person)))
    assert list(answer) == ["name", "age", "tags"] and 1 <= len(answer["name"]) <= 20, answer
    assert isinstance(answer["age"], int) and 0 <= answer["age"] <= 130 and set(answer["tags"]) <= {"a", "b"}, answer
    assert isinstance(json.loads(bound(seed=seed, response_format={"type": "json_object"})), dict)
assert chat(seed=7, response_format={"type": "text"}).choices[0].message == choice.message
# The client's own helper parses what it gets.
class Step(pydantic.BaseModel):
    left: bool
    steps: typing.Literal[1, 2, 3]


parsed = client.chat.completions.parse(model=model, messages=messages, logit_bias=ends, response_format=Step)
step = parsed.choices[0].message.parsed
assert isinstance(step.left, bool) and step.steps in (1, 2, 3), step
# Streamed, the same text comes in pieces, beside answers without a grammar.
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    beside = [pool.submit(chat, seed=7) for _ in range(3)]
    stream = chat(seed=3, stream=True, max_tokens=160, logit_bias=ends, response_format=schema_format(person))
    text = "".join(part.delta.content or "" for chunk in stream for part in chunk.choices)
    assert text == bound(seed=3, response_format=schema_format(person))
    assert all(one.result().choices[0].message.content == choice.message.content for one in beside)
# vLLM's names, in chats and in completions.
for extra, check in [
    ({"guided_regex": "[a-f]{3}-[0-9]"}, lambda text: re.fullmatch("[a-f]{3}-[0-9]", text)),
    ({"guided_choice": ["yes", "no"]}, lambda text: text in ("yes", "no")),
    ({"guided_json": {"type": "boolean"}}, lambda text: isinstance(json.loads(text), bool)),
    ({"guided_grammar": 'start: "<" word ">"\nword: /[a-z]{1,4}/'}, lambda text: re.fullmatch("<[a-z]{1,4}>", text)),
    ({"structured_outputs": {"choice": ["left", "right"]}}, lambda text: text in ("left", "right")),
]:
    for one in chat(n=3, seed=11, max_tokens=60, extra_body=extra).choices:
        assert check(one.message.content) and one.finish_reason == "stop", (extra, one)
    plain = client.completions.create(model=model, prompt="Once", max_tokens=60, seed=4, extra_body=extra)
    assert check(plain.choices[0].text), (extra, plain)
# Log-probabilities are among what is allowed: one of two choices, and then the rest of the chosen one.
drawn = chat(temperature=0.5, logprobs=True, top_logprobs=3, seed=5, extra_body={"guided_choice": ["yes", "no"]})
told = drawn.choices[0].logprobs.content
assert abs(sum(math.exp(part.logprob) for part in told[0].top_logprobs) - 1) < 1e-4, told[0]
assert all(abs(part.logprob) < 1e-5 for part in told[1:]), told
# What cannot be bound is refused with the reason.
for schema, why in [
    ({"not": {}}, "cannot bind responses: Unimplemented keys"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "the JSON schema cannot bind responses"),
    ({"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}}, "$ref": "#/$defs/a"}, "no finite value"),
    ({"enum": [f"{number}" for number in range(40_000)]}, "are more than 262144"),
    ({"type": "string", "pattern": "("}, "the JSON schema cannot bind responses"),
]:
    refused(openai.BadRequestError, why, chat, response_format=schema_format(schema))
refused(openai.BadRequestError, "needs `json_schema`", chat, response_format={"type": "json_schema", "json_schema": {"name": "a"}})
refused(openai.BadRequestError, "is not supported", chat, response_format={"type": "xml"})
refused(openai.BadRequestError, "do not go together", chat, response_format={"type": "json_object"},
        extra_body={"guided_regex": "a"})
refused(openai.BadRequestError, "`ignore_eos` and `guided_regex`", chat, extra_body={"guided_regex": "a", "ignore_eos": True})
refused(openai.BadRequestError, "shows no form of calls", chat, tool_choice="required")

# Eight rows outgrow the cache: 768 tokens are room for six of 128, and for four of 192.
crowd = chat(seed=3, n=8, max_tokens=96, extra_body={"ignore_eos": True})
assert [part.finish_reason for part in crowd.choices] == ["length"] * 8

# Many requests at once, some of them cancelled, get the answers that each gets alone.
def alone(seed):
    if seed % 5 == 0:
        chat(seed=seed, stream=True, max_tokens=400, extra_body={"ignore_eos": True}).close()
    return chat(seed=seed).choices[0].message.content


with concurrent.futures.ThreadPoolExecutor(16) as pool:
    found = list(pool.map(alone, range(40)))
assert found == [chat(seed=seed).choices[0].message.content for seed in range(40)]

print(greedy.encode().hex())
