"""Writes what the makers' clients send into `requests/`: `python record.py`.

    pip install openai==3.57.0 anthropic==2.14.0 google-genai==3.6.1

Each file has the client, the path and the body. `chat`, which the body becomes, is written by hand and kept.
"""

import http.server
import importlib.metadata
import json
import pathlib
import threading

import anthropic
import openai
import pydantic
from google import genai
from google.genai import types

FOLDER = pathlib.Path(__file__).parent / "requests"
sent = []


class Recorder(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        sent.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
        self.send_response(400)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}"
gpt = openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0)
claude = anthropic.Anthropic(base_url=base, api_key="k", max_retries=0)
gemini = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=base, api_version="v1beta"))


class Book(pydantic.BaseModel):
    author: str
    year: int


class Books(pydantic.BaseModel):
    books: list[Book]
    kind: str | None = None


def add(a: int, b: int = 3) -> int:
    """Adds."""
    return a + b


def record(name, package, call):
    sent.clear()
    try:
        call()
    except Exception:
        assert sent, name
    [(path, body)] = sent
    file = FOLDER / f"{name}.json"
    old = json.loads(file.read_text()) if file.exists() else {}
    client = f"{package} {importlib.metadata.version(package)}"
    new = {"client": client, "path": path, "sent": body, "chat": old.get("chat")}
    file.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n")


numbers = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

# OpenAI
function = {"type": "function", "name": "add", "description": "Adds.", "parameters": numbers, "strict": True}
respond = gpt.responses.create
record("responses_text", "openai", lambda: respond(
    model="m", input="hi", instructions="Be short.", max_output_tokens=9, temperature=0.5, top_p=0.9, store=False,
    metadata={"a": "b"}, user="me", truncation="auto", parallel_tool_calls=True, extra_body={"seed": 7, "min_p": 0.1}))
record("responses_parse", "openai", lambda: gpt.responses.parse(model="m", input="hi", text_format=Book))
record("responses_stream", "openai", lambda: respond(model="m", input="hi", stream=True, include=[
    "message.output_text.logprobs", "reasoning.encrypted_content"], top_logprobs=2, reasoning={"effort": "low", "summary": "auto"}))
record("responses_tools", "openai", lambda: respond(
    model="m", tools=[function], tool_choice={"type": "function", "name": "add"}, input=[
        {"role": "developer", "content": "Add."},
        {"role": "user", "content": [{"type": "input_text", "text": "2 + 3?"}, {"type": "input_text", "text": " Soon."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "I add."}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "Adding.", "annotations": [], "logprobs": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": "{\"a\": 2}", "status": "completed"},
        {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{\"a\": 3}"},
        {"type": "function_call_output", "call_id": "c1", "output": "2"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "3"}]},
        {"role": "assistant", "content": "5"},
        {"role": "user", "content": "Again."}]))
record("responses_allowed", "openai", lambda: respond(
    model="m", input="hi", tools=[function], tool_choice={"type": "allowed_tools", "mode": "required", "tools": [
        {"type": "function", "name": "add"}]}, text={"format": {"type": "json_object"}, "verbosity": "medium"}))
record("responses_count", "openai", lambda: gpt.responses.input_tokens.count(model="m", input="hi", instructions="Be short."))

# Anthropic
tool = {"name": "add", "description": "Adds.", "input_schema": numbers, "cache_control": {"type": "ephemeral"}}
hi = [{"role": "user", "content": "hi"}]
ask = claude.messages.create
record("messages_text", "anthropic", lambda: ask(
    model="m", max_tokens=9, messages=hi, stop_sequences=["\n\n", "END"], metadata={"user_id": "me"},
    system=[{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": " Now."}],
    extra_body={"temperature": 0.5, "top_p": 0.9, "top_k": 4, "seed": 7}))
record("messages_parse", "anthropic", lambda: claude.messages.parse(model="m", max_tokens=9, messages=hi, output_format=Books))
record("messages_stream", "anthropic", lambda: ask(
    model="m", max_tokens=2000, messages=hi, stream=True, system="Be short.", output_config={"effort": "low"},
    thinking={"type": "enabled", "budget_tokens": 1024, "display": "omitted"}))
record("messages_tools", "anthropic", lambda: ask(
    model="m", max_tokens=9, tools=[tool], tool_choice={"type": "any"}, thinking={"type": "disabled"}, messages=[
        {"role": "user", "content": [{"type": "text", "text": "2 + 3?", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "I add.", "signature": "sig"},
            {"type": "text", "text": "Adding."},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 2}},
            {"type": "tool_use", "id": "c2", "name": "add", "input": {"a": 3}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "2"},
            {"type": "tool_result", "tool_use_id": "c2", "is_error": True, "content": [{"type": "text", "text": "3?"}]},
            {"type": "text", "text": "And?"}]},
        {"role": "assistant", "content": "5"},
        {"role": "user", "content": "Again."},
        {"role": "user", "content": "Now."}]))
record("messages_tool", "anthropic", lambda: claude.beta.messages.create(
    model="m", max_tokens=9, tools=[tool], messages=hi, betas=["x-2026-01-01"],
    tool_choice={"type": "tool", "name": "add", "disable_parallel_tool_use": True}))
record("messages_count", "anthropic", lambda: claude.messages.count_tokens(model="m", messages=hi, tools=[tool]))

# Google
declared = types.FunctionDeclaration(name="add", description="Adds.", parameters=types.Schema(
    type="OBJECT", properties={"a": types.Schema(type="INTEGER", minimum=1, nullable=True)}, required=["a"]))
generate = gemini.models.generate_content
config = types.GenerateContentConfig
record("google_text", "google-genai", lambda: generate(model="m", contents="hi", config=config(
    system_instruction="Be short.", temperature=0.5, top_p=0.9, top_k=4, candidate_count=2, max_output_tokens=9, seed=7,
    stop_sequences=["END"], response_logprobs=True, logprobs=3, safety_settings=[
        types.SafetySetting(category="HARM_CATEGORY_HARASSMENT", threshold="BLOCK_NONE")],
    thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=64))))
record("google_schema", "google-genai", lambda: generate(model="models/m", contents="hi", config=config(
    response_schema=Books, response_mime_type="application/json")))
record("google_json", "google-genai", lambda: generate(model="org/m", contents="hi", config=config(
    response_json_schema=numbers, response_mime_type="application/json",
    thinking_config=types.ThinkingConfig(thinking_level="LOW"))))
record("google_enum", "google-genai", lambda: generate(model="m", contents="hi", config=config(
    response_schema={"type": "STRING", "enum": ["yes", "no"]}, response_mime_type="text/x.enum")))
record("google_stream", "google-genai", lambda: list(gemini.models.generate_content_stream(model="m", contents="hi")))
record("google_tools", "google-genai", lambda: generate(
    model="m", contents=[
        types.Content(role="user", parts=[types.Part(text="2 + 3?")]),
        types.Content(role="model", parts=[types.Part(text="I add.", thought=True, thought_signature=b"abc")]),
        types.Content(role="model", parts=[types.Part(text="Add")]),
        types.Content(role="model", parts=[
            types.Part(text="ing."), types.Part.from_function_call(name="add", args={"a": 2}),
            types.Part(function_call=types.FunctionCall(id="own", name="add", args={"a": 3}))]),
        types.Content(role="user", parts=[
            types.Part.from_function_response(name="add", response={"output": "2"}),
            types.Part(function_response=types.FunctionResponse(id="own", name="add", response={"result": 3}))]),
        types.Content(role="model", parts=[types.Part.from_function_call(name="add", args={})]),
        types.Content(role="user", parts=[types.Part.from_function_response(name="add", response={"error": "a?"})])],
    config=config(tools=[types.Tool(function_declarations=[declared])], tool_config=types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(mode="ANY", allowed_function_names=["add"])))))
record("google_python", "google-genai", lambda: generate(model="m", contents="hi", config=config(tools=[add])))
record("google_count", "google-genai", lambda: gemini.models.count_tokens(model="m", contents="hi"))
