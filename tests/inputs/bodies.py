"""Bodies of requests to a server."""
import gzip
import itertools
from typing import Any, Iterator

from checkpoints import CONFIG, H, V, checkpoint, shapes, tensors
from inputs import BEYOND, MB, Place, Request, Talk, deep, nested, of, talk

PLAIN, CHAT = "/v1/completions", "/v1/chat/completions"
NUMBERS = {"below 0": "-1", "a third": "0.3", "text": '"1"', "a list": "[1]", "beyond any": "1e999", "digits": "9" * MB}


def ask(**fields: Any) -> dict[str, Any]:
    return {"prompt": "a", "max_tokens": 1, **fields}


def tell(content: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 1, **fields}


def called(**function: Any) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": function}
    return {"messages": [{"role": "assistant", "tool_calls": [call]}], "max_tokens": 1}


# Bodies, and what an error names.
COMPLETIONS: dict[str, tuple[Any, str]] = {
    "no prompts": (ask(prompt=[]), "prompt"), "a deep prompt": ('{"prompt": ' + deep(100_000) + "}", "column"),
    "many ids": (lambda: ask(prompt=[1] * (4 * MB - 9)), "prompt"),
    "long prompts": (lambda: ask(prompt=["a" * 3000] * 4096), "prompt"),
    "many prompts": (lambda: ask(prompt=[f"{at}" for at in range(4096)]), "prompt"),
    "many responses": (ask(prompt=["a"] * 32, n=128, max_tokens=8, logprobs=20, ignore_eos=True), "n"),
    "logprobs of prompts": (lambda: ask(prompt=[[5] * 250] * 4096, prompt_logprobs=0, max_tokens=0), "logprobs"),
    "logprobs, repeated": (ask(prompt=["a" * 200] * 20, n=128, prompt_logprobs=0), "logprobs"),
    "stops of nothing": (ask(stop=[""] * 16), "stop"),
    "stops that nearly come": (ask(stop=[chr(at) * 900 for at in range(65, 81)], n=64, max_tokens=200, ignore_eos=True),
        "stop"),
    "ids beyond all": (ask(stop_token_ids=[2**32 - 1] * 128), "stop_token_ids"),
    "a bias beyond all": (ask(logit_bias={str(BEYOND): 1.0}), "token"),
    "all biases down": (ask(logit_bias={str(at): -100 for at in range(V)}), "logit_bias"),
    "many biases": (lambda: ask(logit_bias={str(at): 1 for at in range(100_000)}), "logit_bias"),
    "a field twice": ('{"prompt": "a", "prompt": "b"}', "`prompt`"),
    "a field often": (lambda: "{" + '"user": "a", ' * 300_000 + '"prompt": "a", "max_tokens": 1}', "user"),
    "many fields": (lambda: ask(**{f"f{at}": None for at in range(900_000)}), "f"),
    "a long field": (ask(**{"x" * 9_000: 1}), "xxx"), "a long model": (ask(model="../" * 9000), "model"),
    "nothing": ("", "body"), "no UTF-8": (b'{"prompt": "\xff\xfe"}', "body"),
    "UTF-16": ('{"prompt": "a"}'.encode("utf-16"), "body"), "spaces": (of(b" ", 63 * MB), "body"),
    "too many spaces": (of(b" ", 65 * MB), "body|closed"),
    "escapes": (lambda: '{"prompt": "' + "\\u0041" * (9 * MB) + '"}', "prompt"),
    "many lists": (lambda: '{"x": [' + "[]," * (20 * MB) + "[]]}", "values"),
    "many stops": (lambda: ask(stop=["x"] * 300_000), "stop"),
    "many stop ids": (lambda: ask(stop_token_ids=list(range(900_000))), "stop_token_ids"),
    "marks in a text": (lambda: '{"prompt": "a", "max_tokens": 1, "user": "' + '\\",[{' * (10 * MB) + '"}', "user"),
}
CHATS: dict[str, tuple[Any, str]] = {
    "a long role": ({"messages": [{"role": "root" * 9000, "content": "a"}]}, "root"),
    "many parts": (lambda: tell([{"type": "text", "text": ""}] * 300_000), "messages"),
    "a file": (tell([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]), "content"),
    "many messages": (lambda: {"messages": [{"role": "user", "content": "a"}] * 200_000}, "messages"),
    "a long message": (lambda: tell("a" * (60 * MB)), "prompt|messages"),
    "many marks": (lambda: tell("<|im_end|>" * 300_000), "prompt"),
    "deep arguments": (called(name="f", arguments=deep(100_000)), "messages"),
    "many tools": (lambda: tell(tools=[{"type": "function",
        "function": {"name": f"f{at}", "parameters": {}}} for at in range(200_000)]), "tools"),
    "the template's variables": (tell(chat_template_kwargs={"messages": [], "__measured": 1}), "chat_template_kwargs"),
    "many variables": (lambda: tell(chat_template_kwargs={f"v{at}": at for at in range(900_000)}),
        "chat_template_kwargs"),
    "variables of lists": (lambda: tell(chat_template_kwargs={"x": [[0]] * 900_000}), "chat_template_kwargs"),
    "a schema": (tell(response_format={"type": "json_schema",
        "json_schema": nested(100, lambda inner: {"not": inner}, True)}), "response_format"),
    "many calls": (lambda: {"max_tokens": 1, "messages": [{"role": "assistant", "tool_calls": [
        {"id": f"{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for at in range(100_000)]}]},
        "messages"),
    "a long tool": (lambda: tell(tools=[{"type": "function",
        "function": {"name": "f", "description": "d" * (30 * MB), "parameters": {}}}]), "tools|prompt|template"),
    "many streams": (tell(stream=True, n=128, max_tokens=30, logprobs=True, top_logprobs=20, ignore_eos=True),
        "stream"),
}
SMALL = b'{"prompt": "a", "max_tokens": 1}'


def head(*fields: str) -> bytes:
    return "\r\n".join([f"POST {PLAIN} HTTP/1.1", "host: a", *fields, "", ""]).encode()


SIZED, CHUNKED = head(f"content-length: {len(SMALL)}"), head("transfer-encoding: chunked")
PACKED = gzip.compress(SMALL)
TALKS: dict[str, Talk] = {
    "a million chunks": talk(CHUNKED, b"1\r\n \r\n" * MB, b"0\r\n\r\n"),
    "a chunk of all": talk(CHUNKED, b"ffffffffffffffff\r\n" + SMALL, 1.0, is_answered=False),
    "a long extension": talk(CHUNKED, b"1;" + b"x" * MB + b"\r\n \r\n"),
    "trailers": talk(CHUNKED, b"0\r\n" + b"a: b\r\n" * 100_000),
    "a length beyond all": talk(head(f"content-length: {BEYOND}"), SMALL),
    "no body": talk(head("content-length: 60000000"), 1.0, is_answered=False),
    "a slow body": talk(SIZED, *itertools.chain(*((SMALL[at:at + 1], 0.1) for at in range(9))), is_answered=False),
    "many fields": talk(head(*[f"f{at}: x" for at in range(5000)]), SMALL),
    "a long field": talk(head("f: " + "x" * MB), SMALL), "no HTTP": talk(b"\x16\x03\x01" * 9000),
    "a long path": talk(b"POST /" + b"x" * MB + b" HTTP/1.1\r\n\r\n"),
    "two lengths": talk(head("content-length: 5", "content-length: 32"), SMALL),
    "half a request": talk(SIZED[:20], is_answered=False), "many at once": talk((SIZED + SMALL) * 2000),
    "gzip": talk(head(f"content-length: {len(PACKED)}", "content-encoding: gzip"), PACKED),
}


def bodies(place: Place) -> Iterator[Request]:
    fields = "max_tokens", "temperature", "top_p", "n", "seed"
    for field, (name, number) in itertools.product(fields, NUMBERS.items()):
        more = "" if field == "max_tokens" else ', "max_tokens": 1'
        yield Request(f"{field} of {name}", PLAIN, f'{{"prompt": "a"{more}, "{field}": {number}}}', f"{field}|column")
    for path, requests in ((PLAIN, COMPLETIONS), (CHAT, CHATS)):
        for name, (body, says) in requests.items():
            yield Request(f"{path}: {name}", path, body, says)
    for name, body in TALKS.items():
        yield Request(f"HTTP: {name}", "", body, "")


CLASSIFIER = checkpoint(
    config={**CONFIG, "architectures": ["Qwen2ForSequenceClassification"], "num_labels": 1},
    model=lambda: tensors({**shapes(), "score.weight": [1, H]}))
ROUTES: dict[str, tuple[str, Any, str]] = {
    "no input": ("/classify", {}, "input"), "many texts": ("/classify", {"input": ["a"] * 4096}, "text"),
    "too many texts": ("/classify", lambda: {"input": [""] * 900_000}, "texts"),
    "a long text": ("/classify", lambda: {"input": "a" * (60 * MB)}, "tokens"),
    "long texts": ("/classify", lambda: {"input": ["a" * 9_000] * 2000}, "tokens"),
    "many messages": ("/classify", lambda: {"messages": [{"role": "user", "content": ""}] * 200_000}, "template"),
    "other numbers": ("/score", {"text_1": ["a"] * 3, "text_2": ["b"] * 2}, "text_1"),
    "a long query": ("/score", lambda: {"text_1": "a" * (15 * MB), "text_2": ["b"] * 4096}, "query"),
    "a top beyond all": ("/rerank", {"query": "a", "documents": ["b", "c"], "top_n": 2**63}, "top_n"),
    "a top below 0": ("/rerank", {"query": "a", "documents": ["b"], "top_n": -1}, "documents"),
    "texts that come back": ("/rerank", {"query": "", "texts": ["b"] * 4096, "return_text": True}, "texts"),
    "three inputs": ("/predict", {"inputs": [["a", "b", "c"]]}, "input"),
    "deep inputs": ("/predict", '{"inputs": ' + deep(9000) + "}", "column"),
    "too many inputs": ("/predict", lambda: {"inputs": [["a"]] * 500_000}, "texts"),
    "an encoding": ("/v1/embeddings", {"input": "a", "encoding_format": "x" * 100_000}, "xxx"),
    "base 64": ("/v1/embeddings", {"input": ["a"] * 4096, "encoding_format": "base64"}, "input"),
    "many values": ("/v1/embeddings", lambda: '{"input": [' + '"",' * (5 * MB) + '""]}', "values"),
}


def classified(place: Place) -> Iterator[Request]:
    return (Request(name, *request) for name, request in ROUTES.items())
