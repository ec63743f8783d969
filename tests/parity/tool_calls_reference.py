"""The parsers of vLLM and sglang without their engines: only the files that parse calls are imported, and every other
module of the two packages is an empty stand-in.

    pip download --no-deps vllm==0.33.0 sglang==0.5.23
    unzip the two wheels into one folder
    pip install regex openai partial-json-parser orjson transformers==5.23.0
"""
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import types
from pathlib import Path

REAL = (
    "vllm.parser.abstract_parser", "vllm.parser.engine", "vllm.parser.glm47_moe", "vllm.parser.minimax_m2",
    "vllm.parser.kimi_k2", "vllm.parser.deepseek_v32", "vllm.parser.deepseek_v4", "vllm.parser.seed_oss",
    "vllm.parser.qwen3", "vllm.parser.gemma4", "vllm.tool_parsers.utils", "vllm.tool_parsers.abstract_tool_parser",
    "vllm.tool_parsers.tool_strict_level", "vllm.tool_parsers.deepseekv3_tool_parser",
    "vllm.tool_parsers.deepseekv31_tool_parser", "vllm.tool_parsers.llama4_pythonic_tool_parser",
    "vllm.tool_parsers.functiongemma_tool_parser", "sglang.srt.function_call.gpt_oss_detector",
    "sglang.srt.function_call.base_format_detector", "sglang.srt.function_call.core_types",
    "sglang.srt.function_call.utils", "sglang.srt.parser.harmony_parser",
)
PACKAGES = (
    "vllm", "vllm.parser", "vllm.tool_parsers", "sglang", "sglang.srt", "sglang.srt.function_call", "sglang.srt.parser",
)


class Value:
    """Takes any fields."""

    def __init__(self, *_, **fields):
        self.__dict__.update(fields)

    def __class_getitem__(cls, _):
        return cls

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Silent:
    """A logger."""

    def __getattr__(self, name):
        return lambda *_, **__: None


class StandIn(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Value() if name == "envs" else type(name, (Value,), {})
        if name == "make_tool_call_id":
            made = lambda *_, **__: "id"
        if name == "init_logger":
            made = lambda *_: Silent()
        if name == "VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS":
            made = 5
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ("vllm", "sglang", "torch", "xgrammar", "openai_harmony"):
            return None
        if name.startswith(REAL):
            path = self.folder / Path(*name.split("."))
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            search = [str(path.parent)] if path.name == "__init__.py" else None
            return importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


class Vocabulary(dict):
    """Each text is a token."""

    def get(self, text, default=None):
        return self[text] if text in self else default


class Tokenizer:
    def __init__(self, marks):
        self.marks = {mark: 1000 + index for index, mark in enumerate(marks)}
        self.chat_template = ""

    def get_vocab(self):
        return dict(self.marks)


class References:
    """Reads a reply as the reference of each form does."""

    def __init__(self, folder):
        sys.meta_path.insert(0, Finder(Path(folder)))

    def tools(self, functions):
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam

        return [
            ChatCompletionToolsParam(type="function", function=Value(**tool["function"])) for tool in functions
        ]

    def read(self, reference, reply, functions):
        """The calls as `[name, arguments]` and the content, or None where the reference fails."""
        if reference == "sglang.gpt_oss":
            return self.harmony(reply, functions)
        module, name, thinks, marks = VLLM[reference]
        parser = getattr(importlib.import_module(module), name)
        tools = self.tools(functions)
        request = Value(tools=tools, tool_choice="auto", skip_special_tokens=False, include_reasoning=True)
        thinking = {"chat_template_kwargs": {"enable_thinking": thinks}} if thinks is not None else {}
        parser = parser(Tokenizer(marks), tools, **thinking)
        read = getattr(parser, "extract_tool_calls_from_content", None) or parser.extract_tool_calls
        found = read(reply, request)
        return self.plain([(call.function.name, call.function.arguments) for call in found.tool_calls], found.content)

    def harmony(self, reply, functions):
        from sglang.srt.environ import envs
        from sglang.srt.function_call.gpt_oss_detector import GptOssDetector

        envs.SGLANG_FORWARD_UNKNOWN_TOOLS = types.SimpleNamespace(get=lambda: True)
        tools = [types.SimpleNamespace(function=types.SimpleNamespace(**tool["function"])) for tool in functions]
        # The prompt ends with the beginning of the message.
        found = GptOssDetector().detect_and_parse("<|start|>assistant" + reply, tools)
        return self.plain([(call.name, call.parameters) for call in found.calls], found.normal_text)

    @staticmethod
    def plain(calls, content):
        def value(arguments):
            try:
                return json.loads(arguments)
            except ValueError:
                return {"not JSON": arguments}

        return {"calls": [[name, value(arguments)] for name, arguments in calls], "content": content or ""}


THINK = ["<think>", "</think>"]
# The module and the class, whether its constructor takes how it thinks, and the tokens that it looks for.
VLLM = {
    "vllm.glm47": ("vllm.parser.glm47_moe", "Glm47MoeParser", False, THINK + ["<tool_call>", "</tool_call>"]),
    "vllm.minimax_m2": ("vllm.parser.minimax_m2", "MinimaxM2Parser", None, THINK + ["<minimax:tool_call>", "</minimax:tool_call>"]),
    "vllm.kimi_k2": ("vllm.parser.kimi_k2", "KimiK2Parser", False, THINK + [
        "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
        "<|tool_call_argument_begin|>"]),
    "vllm.deepseek_v3": ("vllm.tool_parsers.deepseekv3_tool_parser", "DeepSeekV3ToolParser", None, [
        "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"]),
    "vllm.deepseek_v31": ("vllm.tool_parsers.deepseekv31_tool_parser", "DeepSeekV31ToolParser", None, [
        "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"]),
    "vllm.deepseek_v32": ("vllm.parser.deepseek_v32", "DeepSeekV32Parser", None, []),
    "vllm.deepseek_v4": ("vllm.parser.deepseek_v4", "DeepSeekV4Parser", False, THINK),
    "vllm.seed_oss": ("vllm.parser.seed_oss", "SeedOssParser", False, [
        "<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"]),
    "vllm.gemma4": ("vllm.parser.gemma4", "Gemma4Parser", False, ["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>"]),
    "vllm.functiongemma": ("vllm.tool_parsers.functiongemma_tool_parser", "FunctionGemmaToolParser", None, []),
    "vllm.llama4_pythonic": ("vllm.tool_parsers.llama4_pythonic_tool_parser", "Llama4PythonicToolParser", None, []),
}
