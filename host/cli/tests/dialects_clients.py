"""Asks a server with the clients of OpenAI (Responses), Anthropic and Google: `dialects_clients.py BASE_URL MODEL`.

The model has random weights, and a chat template that asks for calls.
"""

import json
import sys
import typing

import anthropic
import openai
import pydantic
from google import genai
from google.genai import errors, types

base_url, model = sys.argv[1:]
root = base_url.removesuffix("/v1")
gpt = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600)
claude = anthropic.Anthropic(base_url=root, api_key="none", max_retries=0, timeout=600)
gemini = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=root))

prompt = "Grüße 😀"
system = "Say letters."
schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"enum": [3, 4]}}, "required": ["a", "b"],
          "additionalProperties": False}
# Without white space where it may stand or not, so that JSON ends soon.
biases = {str(3 + ord(space)): -50 for space in " \n\r\t"}
short = {"logit_bias": biases}


class Word(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    word: typing.Literal["yes", "no"]


def refused(kind, part, call):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return error
    raise AssertionError(f"not refused: {part}")


# All dialects draw what chat completions draw.
messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
chat = gpt.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=24)
text, prompt_tokens = chat.choices[0].message.content, chat.usage.prompt_tokens
assert chat.choices[0].finish_reason == "length" and chat.usage.completion_tokens == 24, chat
stop = next((letter for letter in reversed(text) if letter.isascii()), text[-1])
before = text[: text.index(stop)]

# OpenAI's Responses.
asked = {"model": model, "instructions": system, "input": prompt, "temperature": 0, "max_output_tokens": 24}
whole = gpt.responses.create(**asked)
assert whole.output_text == text and whole.status == "incomplete", whole
assert whole.incomplete_details.reason == "max_output_tokens", whole
assert (whole.usage.input_tokens, whole.usage.output_tokens) == (prompt_tokens, 24), whole.usage
assert gpt.responses.input_tokens.count(model=model, instructions=system, input=prompt).input_tokens == prompt_tokens
events = list(gpt.responses.create(**asked, stream=True))
pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
assert "".join(pieces) == text and len(pieces) > 3, pieces
assert [event.sequence_number for event in events] == list(range(len(events)))
assert events[0].type == "response.created" and events[-1].type == "response.incomplete", events
assert events[-1].response.output_text == text and events[-1].response.usage == whole.usage
stopped = gpt.responses.create(**asked, extra_body={"stop": [stop]})
assert stopped.output_text == before and stopped.status == "completed", stopped
with gpt.responses.stream(**asked, extra_body={"stop": [stop]}) as stream:
    assert stream.get_final_response().output_text == before
told = gpt.responses.create(**asked, include=["message.output_text.logprobs"], top_logprobs=2).output[0].content[0].logprobs
assert len(told) == 24 and all(abs(one.top_logprobs[0].logprob - one.logprob) < 1e-5 for one in told), told
parsed = gpt.responses.parse(model=model, input="?", text_format=Word, max_output_tokens=200, extra_body=short)
assert parsed.output_parsed.word in ("yes", "no"), parsed

functions = [{"type": "function", "name": name, "description": "?", "parameters": schema, "strict": True} for name in ("add", "sub")]
choice = {"type": "function", "name": "sub"}
conversation = [{"role": "user", "content": "2 + 3?"}]
calling = {"model": model, "tools": functions, "tool_choice": choice, "max_output_tokens": 300, "extra_body": {**short, "seed": 3}}
called = gpt.responses.create(input=conversation, **calling)
[call] = [item for item in called.output if item.type == "function_call"]
assert call.name == "sub" and set(json.loads(call.arguments)) == {"a", "b"} and called.status == "completed", called
with gpt.responses.stream(input=conversation, **calling) as stream:
    [streamed] = [item for item in stream.get_final_response().output if item.type == "function_call"]
assert (streamed.name, streamed.arguments, streamed.call_id) == (call.name, call.arguments, call.call_id), streamed
conversation += called.output
conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": "5"})
[more] = [item for item in gpt.responses.create(input=conversation, **calling).output if item.type == "function_call"]
assert more.call_id != call.call_id, more
refused(openai.BadRequestError, "`store` is not supported", lambda: gpt.responses.create(**asked, store=True))
refused(openai.BadRequestError, "`max_output_tokens`", lambda: gpt.responses.create(**{**asked, "max_output_tokens": -1}))
refused(openai.NotFoundError, "is not served here", lambda: gpt.responses.create(model="other", input="?"))
error = refused(openai.BadRequestError, "16", lambda: gpt.responses.create(**asked, extra_body={"stop": ["a"] * 17}))
assert error.param == "stop", error

# Anthropic's Messages.
hello = [{"role": "user", "content": prompt}]
greedy = {"temperature": 0}
asked = {"model": model, "system": system, "messages": hello, "max_tokens": 24, "extra_body": greedy}
whole = claude.messages.create(**asked)
assert [block.text for block in whole.content] == [text] and whole.stop_reason == "max_tokens", whole
assert (whole.usage.input_tokens, whole.usage.output_tokens) == (prompt_tokens, 24), whole.usage
assert claude.messages.count_tokens(model=model, system=system, messages=hello).input_tokens == prompt_tokens
with claude.messages.stream(**asked) as stream:
    pieces = list(stream.text_stream)
    final = stream.get_final_message()
assert "".join(pieces) == text and len(pieces) > 3, pieces
assert (final.content[0].text, final.stop_reason, final.usage.input_tokens) == (text, "max_tokens", prompt_tokens), final
stopped = claude.messages.create(**asked, stop_sequences=["nowhere", stop])
assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", stop), stopped
assert "".join(block.text for block in stopped.content) == before, stopped
with claude.messages.stream(**asked, stop_sequences=[stop]) as stream:
    assert stream.get_final_message().stop_sequence == stop
parsed = claude.messages.parse(model=model, messages=hello, max_tokens=200, output_format=Word, extra_body=short)
assert parsed.parsed_output.word in ("yes", "no"), parsed

tools = [{"name": name, "description": "?", "input_schema": schema} for name in ("add", "sub")]
calling = {"model": model, "tools": tools, "max_tokens": 300, "extra_body": {**short, "seed": 3}}
conversation = [{"role": "user", "content": "2 + 3?"}]
called = claude.messages.create(messages=conversation, tool_choice={"type": "tool", "name": "sub"}, **calling)
[call] = called.content
assert called.stop_reason == "tool_use" and call.name == "sub" and set(call.input) == {"a", "b"}, called
with claude.messages.stream(messages=conversation, tool_choice={"type": "tool", "name": "sub"}, **calling) as stream:
    [streamed] = stream.get_final_message().content
assert (streamed.id, streamed.name, streamed.input) == (call.id, call.name, call.input), streamed
conversation += [{"role": "assistant", "content": called.content},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "5"}]}]
# A reply may make several calls, unless there is to be one.
single = {**calling, "tools": tools[:1], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
[more] = claude.messages.create(messages=conversation, **single).content
assert more.type == "tool_use" and more.id != call.id, more
image = {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}
error = refused(anthropic.BadRequestError, "image` is not supported",
                lambda: claude.messages.create(model=model, max_tokens=9, messages=[{"role": "user", "content": [image]}]))
assert error.type == "invalid_request_error", error
refused(anthropic.NotFoundError, "is not served here", lambda: claude.messages.create(model="other", max_tokens=9, messages=hello))
refused(anthropic.BadRequestError, "`stop_sequences`", lambda: claude.messages.create(**asked, stop_sequences=["a"] * 17))

# Google's generateContent.
config = {"system_instruction": system, "temperature": 0, "max_output_tokens": 24}
whole = gemini.models.generate_content(model=model, contents=prompt, config=config)
candidate, usage = whole.candidates[0], whole.usage_metadata
assert whole.text == text and candidate.finish_reason == types.FinishReason.MAX_TOKENS, whole
assert (usage.prompt_token_count, usage.candidates_token_count) == (prompt_tokens, 24), usage
chunks = list(gemini.models.generate_content_stream(model=model, contents=prompt, config=config))
assert "".join(chunk.text or "" for chunk in chunks) == text and len(chunks) > 3, chunks
assert chunks[-1].candidates[0].finish_reason == types.FinishReason.MAX_TOKENS and chunks[-1].usage_metadata == usage, chunks
counted = gemini.models.count_tokens(model=model, contents=prompt).total_tokens
assert 0 < counted < prompt_tokens, counted
stopped = gemini.models.generate_content(model=model, contents=prompt, config={**config, "stop_sequences": [stop]})
assert (stopped.text or "") == before and stopped.candidates[0].finish_reason == types.FinishReason.STOP, stopped
several = gemini.models.generate_content(model=model, contents=prompt, config={
    "candidate_count": 2, "max_output_tokens": 8, "seed": 5, "response_logprobs": True, "logprobs": 2})
assert len({one.content.parts[0].text for one in several.candidates}) == 2, several
assert all(len(one.logprobs_result.chosen_candidates) <= 8 for one in several.candidates), several
biased = types.HttpOptions(extra_body={"generationConfig": {"logitBias": biases}})
one_of = {"response_mime_type": "text/x.enum", "response_schema": {"type": "STRING", "enum": ["yes", "no"]}}
assert gemini.models.generate_content(model=model, contents=prompt, config=one_of).text in ("yes", "no")
object_of = {"response_mime_type": "application/json", "response_schema": Word, "http_options": biased, "max_output_tokens": 200}
assert gemini.models.generate_content(model=model, contents=prompt, config=object_of).parsed.word in ("yes", "no")

declared = types.Tool(function_declarations=[
    types.FunctionDeclaration(name="add", description="?", parameters_json_schema=schema),
    types.FunctionDeclaration(name="sub", description="?", parameters=types.Schema(
        type="OBJECT", properties={"word": types.Schema(type="STRING", enum=["yes", "no"])}, required=["word"]))])
calling = types.GenerateContentConfig(
    tools=[declared], max_output_tokens=300, seed=3, http_options=biased, tool_config=types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(mode="ANY", allowed_function_names=["add"])))
conversation = gemini.chats.create(model=model, config=calling)
[call] = conversation.send_message("2 + 3?").function_calls
assert call.name == "add" and set(call.args) == {"a", "b"} and call.id, call
[streamed] = [call for chunk in gemini.models.generate_content_stream(model=model, contents="2 + 3?", config=calling)
              for call in chunk.function_calls or []]
assert (streamed.name, streamed.args) == (call.name, call.args), streamed
[more] = conversation.send_message(types.Part.from_function_response(name="add", response={"output": 5})).function_calls
assert more.id != call.id, more
error = refused(errors.ClientError, "`cachedContent` is not supported",
                lambda: gemini.models.generate_content(model=model, contents="?", config={"cached_content": "cachedContents/x"}))
assert (error.code, error.status) == (400, "INVALID_ARGUMENT"), error
error = refused(errors.ClientError, "is not served here", lambda: gemini.models.generate_content(model="other", contents="?"))
assert (error.code, error.status) == (404, "NOT_FOUND"), error
error = refused(errors.ClientError, "`generationConfig.stopSequences`", lambda: gemini.models.generate_content(
    model=model, contents="?", config={"stop_sequences": ["a"] * 17}))
assert error.code == 400, error
