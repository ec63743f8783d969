"""Reads replies with calls as vLLM and sglang do, and writes what they read beside what Gavel reads:

    python tests/parity/tool_calls.py FOLDER         # writes tests/parity/tool_calls/*.json

`tool_calls_reference.py` says what FOLDER has in it. `host/text/tests/text/tool_call_parity.rs` reads the same replies
and compares. Each case is a reply with the calls and the text that it means. Where the reference reads it otherwise,
the case says why.
"""
import json
import sys
from pathlib import Path

from tool_calls_differences import DIFFERENCES
from tool_calls_reference import References

HERE = Path(__file__).parent / "tool_calls"
PROPERTIES = {
    "text": {"type": "string"}, "number": {"type": "number"}, "list": {"type": "array"}, "object": {"type": "object"},
    "flag": {"type": "boolean"}, "other": {"type": "string"},
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": PROPERTIES}}}
    for name in ("f", "find_it")
]


def dump(value):
    return json.dumps(value, ensure_ascii=False)


def plain(value):
    return value if isinstance(value, str) else dump(value)


def glm(calls):
    def pair(key, value):
        return f"<arg_key>{key}</arg_key>\n<arg_value>{plain(value)}</arg_value>\n"

    return "\n".join(
        f"<tool_call>{name}\n" + "".join(pair(*item) for item in arguments.items()) + "</tool_call>"
        for name, arguments in calls
    )


def minimax(calls):
    def invoke(name, arguments):
        values = "".join(f'<parameter name="{key}">{plain(value)}</parameter>\n' for key, value in arguments.items())
        return f'<invoke name="{name}">\n{values}</invoke>\n'

    return "<minimax:tool_call>\n" + "".join(invoke(*call) for call in calls) + "</minimax:tool_call>"


def dsml(wrapper):
    def write(calls):
        def parameter(key, value):
            kind = "true" if isinstance(value, str) else "false"
            return f'<｜DSML｜parameter name="{key}" string="{kind}">{plain(value)}</｜DSML｜parameter>\n'

        def invoke(name, arguments):
            values = "".join(parameter(*item) for item in arguments.items())
            return f'<｜DSML｜invoke name="{name}">\n{values}</｜DSML｜invoke>\n'

        return f"<｜DSML｜{wrapper}>\n" + "".join(invoke(*call) for call in calls) + f"</｜DSML｜{wrapper}>"

    return write


def seed(calls):
    def call(name, arguments):
        values = "".join(f"<parameter={key}>{plain(value)}</parameter>\n" for key, value in arguments.items())
        return f"<seed:tool_call>\n<function={name}>\n{values}</function>\n</seed:tool_call>"

    return "\n".join(call(*one) for one in calls)


def kimi(calls):
    written = "".join(
        f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{dump(arguments)}<|tool_call_end|>"
        for index, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{written}<|tool_calls_section_end|>"


def deepseek_v3(calls):
    written = "\n".join(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{dump(arguments)}\n```<｜tool▁call▁end｜>"
        for name, arguments in calls
    )
    return f"<｜tool▁calls▁begin｜>{written}<｜tool▁calls▁end｜>"


def deepseek_v31(calls):
    written = "".join(
        f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{dump(arguments)}<｜tool▁call▁end｜>" for name, arguments in calls
    )
    return f"<｜tool▁calls▁begin｜>{written}<｜tool▁calls▁end｜>"


def gemma(opening, quote, closing):
    def write(calls):
        def value(item):
            if isinstance(item, str):
                return quote + item + quote
            if isinstance(item, dict):
                return "{" + ",".join(f"{key}:{value(inner)}" for key, inner in item.items()) + "}"
            if isinstance(item, list):
                return "[" + ",".join(map(value, item)) + "]"
            return dump(item)

        return "".join(f"{opening}call:{name}{value(arguments)}{closing}" for name, arguments in calls)

    return write


def pythonic(calls):
    def call(name, arguments):
        return f"{name}(" + ", ".join(f"{key}={value!r}" for key, value in arguments.items()) + ")"

    return "[" + ", ".join(call(*one) for one in calls) + "]"


def harmony(calls):
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{dump(arguments)}<|call|>"
        for name, arguments in calls
    )


class Form:
    def __init__(self, format, reference, write, opening, closing, thought=("<think>", "</think>"), whole=False):
        self.format, self.reference, self.write = format, reference, write
        self.opening, self.closing, self.thought, self.whole = opening, closing, thought, whole


GEMMA = ("<|tool_call>", '<|"|>', "<tool_call|>")
FUNCTION_GEMMA = ("<start_function_call>", "<escape>", "<end_function_call>")
CALLS = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
FORMS = {
    "glm": Form("Glm", "vllm.glm47", glm, "<tool_call>", "</tool_call>"),
    "minimax_m2": Form("MiniMax", "vllm.minimax_m2", minimax, "<minimax:tool_call>", "</minimax:tool_call>"),
    "kimi_k2": Form("Kimi", "vllm.kimi_k2", kimi, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    "deepseek_v3": Form("DeepSeek", "vllm.deepseek_v3", deepseek_v3, *CALLS),
    "deepseek_v31": Form("DeepSeek", "vllm.deepseek_v31", deepseek_v31, *CALLS),
    "deepseek_v32": Form("Dsml", "vllm.deepseek_v32", dsml("function_calls"), "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    "deepseek_v4": Form("Dsml", "vllm.deepseek_v4", dsml("tool_calls"), "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    "seed_oss": Form("Seed", "vllm.seed_oss", seed, "<seed:tool_call>", "</seed:tool_call>", ("<seed:think>", "</seed:think>")),
    "gemma4": Form("Gemma", "vllm.gemma4", gemma(*GEMMA), GEMMA[0], GEMMA[2], ("<|channel>thought\n", "<channel|>")),
    "function_gemma": Form("FunctionGemma", "vllm.functiongemma", gemma(*FUNCTION_GEMMA), FUNCTION_GEMMA[0], FUNCTION_GEMMA[2], None),
    "pythonic": Form("Pythonic", "vllm.llama4_pythonic", pythonic, "<|python_start|>", "<|python_end|>", None, whole=True),
    "harmony": Form("Harmony", "sglang.gpt_oss", harmony, "<|channel|>commentary to=functions.f<|message|>", "<|call|>", None),
}

ZURICH = ("f", {"text": "Zürich"})
FIND = ("find_it", {"number": 2, "text": "b"})


def cases(form):
    """Each case: its name, the reply, the calls that it means, and the text around them."""
    def one(**arguments):
        return [("f", arguments)]

    made = {
        "plain": [ZURICH],
        "no-arguments": [("f", {})],
        "two": [ZURICH, FIND],
        "three": [ZURICH, FIND, ("f", {})],
        "same-twice": [ZURICH, ZURICH],
        "types": one(text="x", number=1.5, flag=True, list=[1, "a", 2.5], object={"a": {"b": ["c"]}}),
        "number-as-text": one(text="12", other="true"),
        "negative": one(number=-3),
        "zero": one(number=0, flag=False),
        "large-numbers": one(list=[12345678901234567890, 1e22, -1]),
        "empty-values": one(text="", list=[], object={}),
        "nested-lists": one(list=[[1, [2, ["three"]]], []]),
        "nested-objects": one(object={"a": {"b": {"c": {"d": ["e", {"f": "g"}]}}}}),
        "scripts": one(text="数学は楽しい？ Да. مرحبا"),
        "emoji": one(text="🦀👩‍👩‍👧 e\u0301"),
        "separators": one(text="a\u2028b\u00a0c"),
        "lines": one(text="a\nb\n\n  c"),
        "code": one(text="def f(x):\n    return {'a': [x]}  # \"x\""),
        "quotes": one(text="a \"b\" 'c' `d`"),
        "backslashes": one(text="C:\\new\\table \\u0041 \\n"),
        "spaces-around": one(text="  a "),
        "html": one(text="<b>1 < 2 && 3 > 2</b>"),
        "json-in-text": one(text='{"name": "g", "arguments": {}}'),
        "brackets-in-text": one(text="}]) {[( ,:;"),
        "opening-mark-in-text": one(text=f"say {form.opening} to call"),
        "closing-mark-in-text": one(text=f"say {form.closing} to end"),
        "both-marks-in-text": one(text=f"{form.opening}x{form.closing}"),
        "marks-of-others-in-text": one(text="<tool> [TOOL_CALLS] <|python_tag|> <function=g>"),
        "unknown-function": [("h", {"text": "a"})],
        "unknown-argument": one(nothing="a"),
        "dashes-in-name": [("f-g_1", {"text": "a"})],
        "long-text": one(text="word " * 200 + "end"),
    }
    for name, calls in made.items():
        yield name, form.write(calls), calls, ""
    written = form.write([ZURICH])
    if not form.whole and form.format != "Harmony":
        yield "text-before", f"Let me look.\n{written}", [ZURICH], "Let me look."
        yield "text-after", f"{written}\nNow I wait.", [ZURICH], "Now I wait."
        yield "sections-with-text", f"One.{written}Two.{written}", [ZURICH, ZURICH], "One.Two."
    if form.thought:
        begin, end = form.thought
        yield "thought", f"{begin}I look.{end}{written}", [ZURICH], f"{begin}I look.{end}"
        yield "mark-in-thought", f"{begin}I write {form.opening} now.{end}{written}", [ZURICH], f"{begin}I write {form.opening} now.{end}"
        yield "call-in-thought", f"{begin}{written}{end}No.", [], f"{begin}{written}{end}No."
    yield "no-call", "It is warm in Zürich.", [], "It is warm in Zürich."
    yield "empty", "", [], ""
    yield "only-the-mark", form.opening, [], form.opening
    yield "only-the-end", form.closing, [], form.closing
    yield "nothing-inside", form.opening + form.closing, [], form.opening + form.closing
    long = form.write([("f", {"text": "Zürich, Genève, Lausanne and the other cities on the lakes of the country", "number": 12})])
    for quarter in (1, 2, 3):
        cut = long[: len(long) * quarter // 4]
        yield f"cut-at-{quarter}-of-4", cut, [], cut
    cut = form.write([ZURICH, FIND])
    cut = cut[: cut.rindex("b") - 1]
    if form.format in ("Glm", "Seed", "Gemma", "FunctionGemma", "Harmony"):
        left = cut.split(written, 1)[1].strip()
        yield "second-cut", cut, [ZURICH], left
    else:
        yield "second-cut", cut, [], cut
    yield from SPECIAL.get(form.format, lambda form: [])(form)


def special_glm(form):
    yield "on-one-line", "<tool_call>f<arg_key>text</arg_key><arg_value>a</arg_value></tool_call>", [("f", {"text": "a"})], ""
    yield "value-without-end", "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>a\n</tool_call>", [], None
    yield "key-without-value", "<tool_call>f\n<arg_key>text</arg_key>\n</tool_call>", [], None
    yield "key-without-end", "<tool_call>f\n<arg_key>text\n<arg_value>a</arg_value>\n</tool_call>", [], None
    yield "text-between", "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>a</arg_value>\nand\n</tool_call>", [], None
    yield "no-name", "<tool_call>\n<arg_key>text</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", [], None
    yield "end-of-value-in-text", "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>a</arg_value>b</arg_value>\n</tool_call>", [("f", {"text": "a</arg_value>b"})], ""
    yield "json-inside", '<tool_call>{"name": "f", "arguments": {"text": "a"}}</tool_call>', [], None


def special_tagged(form):
    function, end = {
        "MiniMax": ('<invoke name="f">', "</invoke>"), "Seed": ("<function=f>", "</function>"),
        "Dsml": ('<｜DSML｜invoke name="f">', "</｜DSML｜invoke>"),
    }[form.format]
    parameter, closing = {
        "MiniMax": ('<parameter name="text">', "</parameter>"), "Seed": ("<parameter=text>", "</parameter>"),
        "Dsml": ('<｜DSML｜parameter name="text" string="true">', "</｜DSML｜parameter>"),
    }[form.format]

    def written(inside):
        return form.opening + inside + form.closing

    yield "on-one-line", written(f"{function}{parameter}a{closing}{end}"), [("f", {"text": "a"})], ""
    yield "value-without-end", written(f"{function}{parameter}a{end}"), [], None
    yield "function-without-end", written(f"{function}{parameter}a{closing}"), [], None
    yield "text-between", written(f"{function}and{parameter}a{closing}{end}"), [], None
    yield "no-function", written("and"), [], None
    yield "end-of-value-in-text", written(f"{function}{parameter}a{closing}b{closing}{end}"), [("f", {"text": f"a{closing}b"})], ""
    yield "end-of-function-in-text", written(f"{function}{parameter}a{end}b{closing}{end}"), [("f", {"text": f"a{end}b"})], ""
    yield "call-in-text", written(f"{function}{parameter}{written(f'{function}{parameter}a{closing}{end}')}{closing}{end}"), [("f", {"text": written(f"{function}{parameter}a{closing}{end}")})], ""
    if form.format == "MiniMax":
        yield "single-quotes", written(f"<invoke name='f'><parameter name='text'>a{closing}{end}"), [("f", {"text": "a"})], ""
        yield "no-quotes", written(f"<invoke name=f><parameter name=text>a{closing}{end}"), [("f", {"text": "a"})], ""
    if form.format == "Dsml":
        yield "no-kind", written(f'{function}<｜DSML｜parameter name="number">5{closing}{end}'), [("f", {"number": 5})], ""
        yield "not-json", written(f'{function}<｜DSML｜parameter name="number" string="false">five{closing}{end}'), [("f", {"number": "five"})], ""


def special_kimi(form):
    def call(head, arguments):
        return f"<|tool_call_begin|>{head}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"

    def written(*calls):
        return form.opening + "".join(calls) + form.closing

    yield "white-space", written("\n", call(" functions.f:0 ", ' {"text": "a"}\n'), "\n"), [("f", {"text": "a"})], ""
    yield "no-prefix", written(call("f:0", '{"text": "a"}')), [("f", {"text": "a"})], ""
    yield "no-index", written(call("functions.f", '{"text": "a"}')), [], None
    yield "not-json", written(call("functions.f:0", "{text: a}")), [], None
    yield "a-list", written(call("functions.f:0", "[1]")), [], None
    yield "empty-arguments", written(call("functions.f:0", "")), [], None
    yield "one-of-two-broken", written(call("functions.f:0", '{"text": "a"}'), call("functions.f:1", "{")), [], None
    yield "section-without-end", form.opening + call("functions.f:0", '{"text": "a"}'), [("f", {"text": "a"})], ""
    yield "call-without-end", written("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"text\": \"a\"}"), [("f", {"text": "a"})], ""


def special_deepseek(form):
    opening = "function<｜tool▁sep｜>f\n```json\n" if form.reference == "vllm.deepseek_v3" else "f<｜tool▁sep｜>"
    closing = "\n```" if form.reference == "vllm.deepseek_v3" else ""

    def call(arguments):
        return f"<｜tool▁call▁begin｜>{opening}{arguments}{closing}<｜tool▁call▁end｜>"

    def written(*calls):
        return form.opening + "".join(calls) + form.closing

    yield "pretty", written(call('{\n  "text": "a"\n}')), [("f", {"text": "a"})], ""
    yield "not-json", written(call("{text: a}")), [], None
    yield "a-list", written(call("[1]")), [], None
    yield "one-of-two-broken", written(call('{"text": "a"}'), call("{")), [], None
    yield "section-without-end", form.opening + call('{"text": "a"}'), [("f", {"text": "a"})], ""
    yield "end-of-call-in-text", written(call('{"text": "<｜tool▁call▁end｜>"}')), [("f", {"text": "<｜tool▁call▁end｜>"})], ""


def special_gemma(form):
    opening, quote, closing = GEMMA if form.format == "Gemma" else FUNCTION_GEMMA

    def written(inside):
        return opening + inside + closing

    def text(value):
        return quote + value + quote

    yield "white-space", written(f"call:f{{ text : {text('a')} , number : 4 }}"), [("f", {"text": "a", "number": 4})], ""
    yield "quoted-keys", written(f"call:f{{{text('text')}:{text('a')}}}"), [("f", {"text": "a"})], ""
    yield "bare-text", written("call:f{text:Paris,number:4}"), [("f", {"text": "Paris", "number": 4})], ""
    yield "quoted-number", written(f"call:f{{number:{text('4')}}}"), [("f", {"number": 4})], ""
    yield "no-end-of-text", written(f"call:f{{text:{quote}a}}"), [], None
    yield "no-brace", written("call:f"), [], None
    yield "no-name", written(f"call:{{text:{text('a')}}}"), [], None
    yield "no-prefix", written(f"f{{text:{text('a')}}}"), [], None
    yield "no-value", written("call:f{text:,number:1}"), [], None
    yield "brace-missing", written(f"call:f{{object:{{a:1,text:{text('b')}}}"), [], None


def special_pythonic(form):
    yield "after-the-mark", "<|python_start|>[f(text='a')]<|python_end|>", [("f", {"text": "a"})], ""
    yield "double-quotes", '[f(text="it\'s")]', [("f", {"text": "it's"})], ""
    yield "words-of-json", "[f(flag=true, other=null, list=[false])]", [("f", {"flag": True, "other": None, "list": [False]})], ""
    yield "words-of-python", "[f(flag=True, other=None)]", [("f", {"flag": True, "other": None})], ""
    yield "escapes", r"[f(text='a\tb\n\x41\u00e9\U0001f980\101\'\"\\ \q')]", [("f", {"text": "a\tb\nA\u00e9🦀A'\"\\ \\q"})], ""
    yield "three-quotes", '[f(text="""a\n"b" c""")]', [("f", {"text": 'a\n"b" c'})], ""
    yield "texts-beside", "[f(text='a' 'b')]", [("f", {"text": "ab"})], ""
    yield "tuple", "[f(list=(1, 2))]", [("f", {"list": [1, 2]})], ""
    yield "dotted-name", "[a.f(text='a')]", [("a.f", {"text": "a"})], ""
    yield "on-lines", "[\n  f(\n    text='a',\n  ),\n]", [("f", {"text": "a"})], ""
    yield "numbers", "[f(list=[1_000, +5, .5, 5., 1e3])]", [("f", {"list": [1000, 5, 0.5, 5.0, 1000.0]})], ""
    yield "positional", "[f('a')]", [], None
    yield "variable", "[f(text=a)]", [], None
    yield "expression", "[f(number=1 + 2)]", [], None
    yield "call-in-call", "[f(text=g())]", [], None
    yield "text-before", "Let me look. [f(text='a')]", [], "Let me look. [f(text='a')]"
    yield "text-after", "[f(text='a')] I wait.", [], "[f(text='a')] I wait."
    yield "no-list", "f(text='a')", [], None
    yield "empty-list", "[]", [], None
    yield "list-of-numbers", "[1, 2]", [], None
    yield "link", "[see](https://example.org)", [], None
    yield "line-ends-in-text", "[f(text='a\nb')]", [], None
    yield "code", "__import__('os').system('true')", [], None


def special_harmony(form):
    call = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"text": "a"}'
    meant = [("f", {"text": "a"})]
    thought = "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant"
    yield "thought", f"{thought}{call}<|call|>", meant, ""
    yield "without-constraint", call.replace(" <|constrain|>json", " json") + "<|call|>", meant, ""
    yield "recipient-of-the-role", ' to=functions.f<|channel|>commentary json<|message|>{"text": "a"}<|call|>', meant, ""
    yield "recipient-in-analysis", call.replace("commentary", "analysis") + "<|call|>", meant, ""
    yield "ended-by-the-turn", call, meant, ""
    yield "preamble", f"<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant{call}<|call|>", meant, "Let me look."
    yield "final", "<|channel|>final<|message|>It is warm.", [], "It is warm."
    yield "mark-in-thought", f"<|channel|>analysis<|message|>to=functions.f is it<|end|><|start|>assistant{call}<|call|>", meant, ""
    yield "thought-only", "<|channel|>analysis<|message|>I look.<|end|>", [], None
    yield "not-json", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{text: a}<|call|>", [], None
    yield "a-list", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>[1]<|call|>", [], None
    yield "other-namespace", "<|channel|>commentary to=browser.search <|constrain|>json<|message|>{\"query\": \"a\"}<|call|>", [("browser.search", {"query": "a"})], ""
    yield "no-head", "It is <|end|> warm.", [], None


SPECIAL = {
    "Glm": special_glm, "MiniMax": special_tagged, "Dsml": special_tagged, "Seed": special_tagged, "Kimi": special_kimi,
    "DeepSeek": special_deepseek, "Gemma": special_gemma, "FunctionGemma": special_gemma, "Pythonic": special_pythonic,
    "Harmony": special_harmony,
}

def main(folder):
    references = References(folder)
    HERE.mkdir(exist_ok=True)
    why = {(form, name): reason for reason, forms in DIFFERENCES.items() for form in forms for name in forms[form]}
    unexplained, unused, count = [], set(why), 0
    for name, form in FORMS.items():
        written = []
        for case, reply, calls, content in cases(form):
            content = reply if content is None else content
            meant = {"calls": [[function, arguments] for function, arguments in calls], "content": content}
            try:
                read = references.read(form.reference, reply, TOOLS)
            except Exception as error:
                read = {"failed": f"{type(error).__name__}: {error}"}
            entry = {"case": case, "reply": reply, **meant}
            same = read.get("calls") == meant["calls"] and read["content"].strip() == meant["content"].strip()
            if not same:
                entry["reference"] = read
                key = (name, case) if (name, case) in why else ("*", case)
                entry["why"] = why.get(key)
                unused.discard(key)
                if entry["why"] is None:
                    unexplained.append((name, case, reply, meant, read))
            written.append(entry)
            count += 1
        document = {"format": form.format, "reference": form.reference, "cases": written}
        (HERE / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (HERE / "tools.json").write_text(json.dumps(TOOLS, indent=1) + "\n", encoding="utf-8")
    for name, case, reply, meant, read in unexplained:
        print(f"{name} {case}: {reply!r}\n   meant     {meant}\n   reference {read}")
    print(f"{count} cases, {len(unexplained)} differ without a reason; reasons without a difference: {sorted(unused)}")


if __name__ == "__main__":
    main(sys.argv[1])
