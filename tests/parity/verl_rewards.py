"""Writes the rows on which the standard plugins must agree with verl, with verl's own scores: generated responses,
honest and adversarial, for each `data_source` that a plugin answers to. The same rows come out each time.

    pip install --no-deps verl==0.9.1 mathruler==0.1.0 sympy==1.14.0 mpmath pylatexenc tqdm pyarrow
    python tests/parity/verl_rewards.py            # writes tests/parity/verl/*.parquet

`host/scoring/tests/scoring/verl.rs` scores the same rows with the components and compares.
"""
import contextlib
import importlib
import importlib.util
import io
import json
import sys
import types
from pathlib import Path
from random import Random

import pyarrow
import pyarrow.parquet as parquet

ROWS = 6000
FOLDER = Path(__file__).parent / "verl"
KEYS_ROWS = 25  # of each kind of ground truth that verl and Gavel treat differently
HUGE = 20_000  # characters; verl's patterns need the square of it


def verl_score():
    """verl's `default_compute_score`, without the other imports of the package `verl` (torch, ray, tensordict)."""
    root = Path(importlib.util.find_spec("verl").submodule_search_locations[0])
    for name, folder in [("verl", root), ("verl.utils", root / "utils")]:
        sys.modules[name] = package = types.ModuleType(name)
        package.__path__ = [str(folder)]
    return importlib.import_module("verl.utils.reward_score").default_compute_score


# Texts that are inserted into the responses of every task.
PROSE = [
    "Let me think.", "So we get 12 and 7.", "The answer follows.", "I am not sure", "Größe: ∑ x² ≤ ∞", "答案是这样的。",
    "الجواب", "🙂🙃", "e\u0301te\u0301", "a\u200bb", "non\u00a0breaking", "tab\tand\rreturn", "sep\x1cara\x1ftor",
    "line\u2028separator", "x\x85y", "\\(x\\)", "{", "}", "<b>", "&amp;", "NaN", "None", "\x00",
]


def prose(rng, most=6):
    return rng.choice(["\n", " ", ""]).join(rng.choice(PROSE) for _ in range(rng.randrange(most)))


def filler(rng, around):
    """Text whose length is near a window's edge."""
    return rng.choice(["x", " ", "é", "🙂", "1"]) * max(0, around + rng.randrange(-8, 9))


def soup(rng, tokens, most=14):
    return "".join(rng.choice(tokens) for _ in range(rng.randrange(most)))


def number(rng):
    value = rng.choice([rng.randrange(20), rng.randrange(1000), rng.randrange(10**7), -rng.randrange(500)])
    return str(value)


def with_commas(text):
    return f"{int(text):,}"


# --- openai/gsm8k

GSM8K_SOUP = ["#", "##", "####", "#### ", " ", "\n", "-", "7", "72", ".", ",", "$", "%", "1,234", "\\$", "٧", "７", "+"]


def gsm8k(rng):
    n, other = number(rng), number(rng)
    forms = {
        "honest": f"#### {n}",
        "wrong": f"#### {other}",
        "commas": f"#### {with_commas(n)}",
        "spacing": rng.choice([f"####{n}", f"####  {n}", f"####\n{n}", f"#### {n}\r\n", f"####\u00a0{n}", f"#### {n} "]),
        "unit": rng.choice([f"#### ${n}", f"#### {n}$", f"#### {n}%", f"#### {n} dollars", f"#### {n}km", f"#### €{n}"]),
        "dots": rng.choice([f"#### {n}.", f"#### {n}.0", f"#### {n}.00", f"#### .{n}", f"#### {n},", f"#### ,{n}"]),
        "several": f"#### {other} no: #### {n}" if rng.random() < 0.5 else f"#### {n} or #### {other}",
        "many": " ".join(f"#### {i}" for i in range(rng.randrange(1, 40))),
        "sign": rng.choice([f"#### -{n}", f"#### +{n}", f"#### --{n}", f"#### −{n}", f"#### - {n}"]),
        "none": rng.choice([n, f"The answer is {n}", "####", "#### ", f"\\boxed{{{n}}}", ""]),
        "script": "#### " + n.translate(str.maketrans("0123456789", rng.choice(["٠١٢٣٤٥٦٧٨٩", "０１２３４５６７８９"]))),
        "window": f"#### {n}" + filler(rng, 300 - 5 - len(n)),
    }
    kind = rng.choice([*forms, "soup"])
    if kind == "soup":
        return kind, soup(rng, GSM8K_SOUP), rng.choice(["7", "72", "-7", "1234", ".", "7."])
    tail = prose(rng, 2) if kind != "window" and rng.random() < 0.4 else ""
    return kind, f"{prose(rng)} {forms[kind]}{tail}", n


def gsm8k_keys(rng):
    n = number(rng)
    answer = f"So #### {n}"
    yield "key is a number", answer, int(n)
    yield "key is written with commas, a dollar sign or white space", answer, rng.choice([f" {n}", f"${n}", f"{n}\n"])
    yield "key is a whole solution", answer, f"It is <<1+1={n}>>.\n#### {n}"
    yield "key is missing", answer, None
    yield "key is blank", rng.choice([answer, "#### ,", ""]), rng.choice(["", " ", "$"])


# --- The MATH family

VALUES = [
    "\\frac{1}{2}", "\\frac{14}{3}", "\\dfrac{-3}{4}", "-\\frac{5}{9}", "2\\sqrt{3}", "\\sqrt{2}", "\\frac{\\sqrt{3}}{2}", "3+4i",
    "(1,2)", "\\left(\\frac{1}{2},3\\right)", "[-2,7)", "(-\\infty, 3]", "\\{1,2,3\\}", "x^2+2x+1", "\\text{even}", "90^\\circ",
    "0.5", ".5", "1.50", "10\\%", "\\$5.50", "12\\text{ cm}", "5\\text{ m}^2", "1,000", "1{,}000", "p - q", "x=5", "k = 0.5",
    "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\pi", "2\\pi r", "\\text{Tuesday}", "1/2", "-3/4", "7/0", "a/b",
    "\\log_2 3", "11_{2}", "1\\frac{1}{2}", "\\frac12", "\\frac1{72}", "\\sqrt3", "2^{10}", "\\emptyset", "(A)", "ab", "é", "五",
]
REWRITES = [
    ("\\frac", "\\dfrac"), ("\\frac", "\\tfrac"), ("\\dfrac", "\\frac"), ("\\frac{1}{2}", "0.5"), ("\\frac{1}{2}", "1/2"),
    ("\\frac{1}{2}", "\\frac12"), ("\\frac{1}{2}", ".5"), ("(", "\\left("), (")", "\\right)"), ("\\sqrt{3}", "\\sqrt3"),
    ("\\sqrt{2}", "\\sqrt 2"), (",", ", "), (",", ",\\!"), ("\\", "\\\\"), ("0.", "."), (" ", ""), ("{", "{ "), ("1", " 1"),
    ("^\\circ", "^{\\circ}"), ("^\\circ", ""), ("\\%", "%"), ("\\%", ""), ("\\text{ cm}", ""), ("\\$", ""), ("\\$", "$"),
    ("x=", ""), ("k = ", ""), ("", "x="), ("", "xyz="), ("", " "), ("", "\n"), ("/", " / "), ("\\frac{14}{3}", "14/3"),
]
LATEX_SOUP = [
    "\\frac", "\\sqrt", "{", "}", "\\boxed", "\\boxed{", "\\boxed ", "\\fbox{", "\\text{ ", "\\text{", "1", "2", "0", ".", "=", "x",
    "/", " ", "$", "\\$", "%", "\\%", "^\\circ", "^{\\circ}", "\\left", "\\right", "\\!", "\\\\", "tfrac", "dfrac", "\n", "é", "-",
    "+", "_", "0.5", "½", "\\", ",", "1/2", "\t", "\u00a0",
]


def rewritten(rng, value):
    for _ in range(rng.randrange(3)):
        old, new = rng.choice(REWRITES)
        value = new + value if old == "" else value.replace(old, new, 1)
    return value


def latex_value(rng):
    return rng.choice([rng.choice(VALUES), rng.choice(VALUES), number(rng), f"{number(rng)}/{rng.randrange(1, 99)}"])


def math(rng):
    truth = latex_value(rng)
    answer, other = rewritten(rng, truth), rewritten(rng, latex_value(rng))
    if rng.random() < 0.3:
        truth = rewritten(rng, truth)
    forms = {
        "honest": f"$\\boxed{{{answer}}}$.",
        "wrong": f"$\\boxed{{{other}}}$",
        "several": f"\\boxed{{{other}}} then \\boxed{{{answer}}}",
        "changed": f"\\boxed{{{answer}}} then \\boxed{{{other}}}",
        "nested": f"\\boxed{{\\boxed{{{answer}}}}}",
        "decorated": f"\\boxed{{\\text{{{answer}}}}}",
        "space": rng.choice([f"$\\boxed {answer}$", f"\\boxed {answer}", f"$\\boxed {answer}$ or \\boxed{{{other}}}"]),
        "no braces": rng.choice([f"\\boxed{answer}", f"\\boxed\\frac{{1}}{{2}}", "\\boxed", f"boxed{{{answer}}}"]),
        "fbox": f"\\fbox{{{answer}}}",
        "open": rng.choice([f"\\boxed{{{answer}", f"\\boxed{{{answer}}} \\boxed{{{answer}", f"\\boxed{answer}}}"]),
        "none": rng.choice([answer, f"${answer}$", f"Answer: {answer}", ""]),
        "empty": "\\boxed{}",
        "all": "".join(f"\\boxed{{{value}}}" for value in VALUES),
    }
    kind = rng.choice([*forms, "honest", "honest", "soup", "boxed soup", "the same soup"])
    if kind == "soup":
        return kind, soup(rng, LATEX_SOUP, 30), truth
    if kind == "boxed soup":
        return kind, f"\\boxed{{{soup(rng, LATEX_SOUP)}}}", "=" + soup(rng, LATEX_SOUP, 5) + "1"
    if kind == "the same soup":
        same = soup(rng, LATEX_SOUP) + "1"
        return kind, f"\\boxed{{{rng.choice([same, rewritten(rng, same)])}}}", same
    return kind, f"{prose(rng)} {forms[kind]} {prose(rng, 2)}", truth


def math_keys(rng):
    n = number(rng)
    box = f"\\boxed{{{n}}}"
    yield "key is a number", box, int(n)
    yield "key is missing", box, None
    yield "key is blank", rng.choice([box, "\\boxed{}", ""]), rng.choice(["", " ", "\\!", "x="])


# --- math_dapo

WORDS = ["square", "ways", "dollars", "mph", "hours", "km", "units", "sue", "points", "degrees", "cm", "meters", "cents", "an ", "a "]
DAPO_SOUP = [
    "Answer:", "answer :", "ANSWER:\n", "Anſwer:", "Answer", ":", "\n", " ", "$", "\\$", ".$", "=", "\\boxed{", "}", "{", "1", "34",
    ",", "²", "٣", "\\text{", "\\text{ and }", "\\text{m}", "\\text{}", "\\textbf{", "\\overline{", "\\frac", "frac1", "\\frac{", "sqrt",
    "\\sqrt3", "mbox", "\\ldots", "\\dots", "^\\circ", "^{\\circ}", "{,}", ",\\!", "\\;", "\\ ", '"', "[INVALID]", "\\mathrm{th}",
    "\x1c", "\u00a0", "é", "a ", "an ", *WORDS,
]


def dapo(rng):
    truth = rng.choice([number(rng), latex_value(rng)])
    answer, other = rewritten(rng, truth), number(rng)
    word = rng.choice(["Answer:", "answer:", "ANSWER :", "Answer:\n", "Answer\u00a0:\t", "Anſwer:", "Final Answer:", "**Answer:**"])
    dressed = rng.choice([
        answer, f"${answer}$", f"{answer}.", f"${answer}$.", f"\\({answer}\\)", f"\\boxed{{{answer}}}", f"$\\boxed{{{answer}}}$",
        f"{answer} {rng.choice(WORDS)}", f"x = {answer}", f"a {answer}", f"\\textbf{{{answer}}}", f"\\text{{{answer}}}", f'"{answer}"',
        f"the value ${answer}$ of the sum", f"{answer}\\text{{ {rng.choice(WORDS)}}}", f"**{answer}**", f"{answer}^\\circ",
    ])
    forms = {
        "honest": f"{word} {answer}",
        "dressed": f"{word} {dressed}",
        "wrong": f"{word} {other}",
        "several": f"Answer: {other}\nAnswer: {dressed}",
        "boxed": f"\\boxed{{{truth}}}",
        "boxed otherwise": f"$\\boxed{{{dressed}}}$.",
        "nested": f"\\boxed{{\\boxed{{{truth}}}}}",
        "both": rng.choice([f"Answer: {answer}\n\\boxed{{{other}}}", f"Answer: {other}\n\\boxed{{{answer}}}"]),
        "invalid": f"Answer: [INVALID]\n\\boxed{{{truth}}}",
        "blank": rng.choice(["Answer:", "Answer: ", "Answer:\n\n", "Answer: $$", "Answer:  \n \n"]) + prose(rng, 2),
        "window": f"Answer: {answer}\n" + filler(rng, 300 - 9 - len(answer)),
        "box window": f"\\boxed{{{truth}}}" + filler(rng, 100 - 8 - len(truth)),
        "open": rng.choice([f"\\boxed{{{truth}", f"\\boxed {truth}", f"\\fbox{{{truth}}}"]),
        "none": rng.choice([answer, f"is {answer}", "", "Answer"]),
    }
    kind = rng.choice([*forms, "honest", "dressed", "soup", "stated soup", "the same soup"])
    if kind == "soup":
        return kind, soup(rng, DAPO_SOUP, 30), truth
    if kind == "stated soup":
        return kind, f"Answer: {soup(rng, DAPO_SOUP)}", "=" + soup(rng, DAPO_SOUP, 4) + "1"
    if kind == "the same soup":
        same = soup(rng, DAPO_SOUP) + "34"
        return kind, f"Answer:{same}", same
    tail = rng.choice(["", "", "\n", "\n" + prose(rng, 2)]) if "window" not in kind else ""
    return kind, f"{prose(rng)}\n{forms[kind]}{tail}", truth


def dapo_keys(rng):
    n = number(rng)
    answer = f"Answer: {n}"
    yield "key is a number", answer, int(n)
    yield "key is missing", answer, None
    yield "key is blank", rng.choice([answer, "Answer: $", ""]), rng.choice(["", " ", "units", "x =", "$"])
    yield "key is what verl writes for no answer", rng.choice(["I do not know.", "Answer: 5"]), "[INVALID]"


# --- Search-R1

GOLDS = [
    "Paris", "The Beatles", "Barack Obama", "1969", "July 20, 1969", "U.S.A.", "a", "Émile Zola", "İstanbul", "ΟΔΥΣΣΕΥΣ", "Straße",
    "Guns N' Roses", "“Heroes”", "3.14", "New York City", "an apple", "東京", "C++", "Ca\u0301fe\u0301", "the_end", "5%", "A & B", "x²",
]
ANSWER_SOUP = [
    "<answer>", "</answer>", "<answer>", "</answer>", "answer>", "<answer/>", "<Answer>", "the ", " a ", "An ", "Paris", "paris", ".", "'",
    "“", "_", "\n", "\x1c", "\u00a0", "a\u0301", "²", "İ", "Σ", "", " ", "-",
]


def worded(rng, gold):
    changes = [
        str.lower, str.upper, str.title, lambda g: f"the {g}", lambda g: f"{g}.", lambda g: f" {g}\n", lambda g: f"A {g}!",
        lambda g: g.replace(" ", "  "), lambda g: g.replace(" ", "\x1f"), lambda g: f'"{g}"', lambda g: f"{g} the", lambda g: g[:-1],
        lambda g: f"{g} in France", lambda g: g.replace("'", ""), lambda g: f"an\u00a0{g}", lambda g: f"the-{g}", lambda g: g,
    ]
    for _ in range(rng.randrange(3)):
        gold = rng.choice(changes)(gold)
    return gold


def search(rng):
    golds = rng.sample(GOLDS, rng.randrange(1, 4))
    golds = [gold for gold in golds if gold != "a"] or ["Paris"]
    answer, other = worded(rng, rng.choice(golds)), worded(rng, rng.choice(GOLDS))
    forms = {
        "honest": f"<answer>{answer}</answer>",
        "wrong": f"<answer>{other}</answer>",
        "several": f"<answer>{other}</answer> <answer>{answer}</answer>",
        "changed": f"<answer>{answer}</answer> <answer>{other}</answer>",
        "nested": f"<answer><answer>{answer}</answer></answer>",
        "open": rng.choice([f"<answer>{answer}", f"{answer}</answer>", f"<answer>{answer}<answer>", f"</answer>{answer}<answer>"]),
        "many": f"<answer>{answer}</answer>" * rng.randrange(8, 14),
        "many closed": f"<answer>{answer}</answer>" + "</answer>" * rng.randrange(7, 13),
        "none": rng.choice([answer, f"Answer: {answer}", f"<Answer>{answer}</Answer>", ""]),
        "empty": "<answer>" + rng.choice(["", " ", "\n", "the", "."]) + "</answer>",
        "lines": f"<answer>\n{answer}\n</answer>",
        "all": "<answer>" + " ".join(GOLDS) + "</answer>",
    }
    kind = rng.choice([*forms, "honest", "soup", "the same soup"])
    target = golds[0] if rng.random() < 0.2 else golds
    if kind == "soup":
        return kind, soup(rng, ANSWER_SOUP, 30), {"target": target}
    if kind == "the same soup":
        same = soup(rng, ANSWER_SOUP[4:]) + "x"
        return kind, f"<answer>{worded(rng, same)}</answer>", {"target": [same]}
    return kind, f"<think>{prose(rng)}</think>{forms[kind]}{prose(rng, 2)}", {"target": target}


def search_keys(rng):
    answer = "<answer>Paris</answer>"
    yield "key is a text or a list, without target", answer, rng.choice(["Paris", ["London", "Paris"]])
    yield "key is missing", answer, None
    yield "key has no answer", answer, {"target": []}
    yield "key is blank", rng.choice([answer, "<answer></answer>"]), {"target": rng.choice(["", " "])}
    # The articles of "The The" are removed, and anything blank would equal the rest.
    yield "key is articles alone", rng.choice(["<answer></answer>", "<answer>.</answer>", "<answer>a</answer>"]), {"target": ["The The"]}
    yield "key is a number", "<answer>1969</answer>", {"target": rng.choice([1969, [1969]])}
    # Not a letter to Python, so that the article is removed; alphabetic in Unicode.
    yield "a symbol beside an article", "<answer>aⒶ b</answer>", {"target": ["aⒶ b", "Ⓐ b"][rng.randrange(2):]}


# --- hiyouga/geometry3k

OTHER_FORMS = {
    "\\frac{1}{2}": ["0.5", "1/2", "\\dfrac12", "\\frac{2}{4}", "0.50"], "2\\sqrt{3}": ["2\\sqrt3", "2 \\sqrt{3}", "\\sqrt{12}"],
    "12.5": ["12.50", "\\frac{25}{2}", "12.5\\text{ cm}", "12.5\\%"], "90^\\circ": ["90", "90^{\\circ}", "90 degrees"],
    "\\frac{14}{3}": ["14/3", "4\\frac{2}{3}", "\\frac{28}{6}"], "36": ["36.0", "x=36", "36\\text{ cm}^2", "6^2"], "-7": ["-7.0", "- 7"],
}


def geometry(rng):
    truth = rng.choice(list(OTHER_FORMS))
    answer = rng.choice([truth, truth, number(rng)])
    other = rng.choice(OTHER_FORMS[truth])
    forms = {
        "honest": f"<think>{prose(rng)}</think>\\boxed{{{answer}}}",
        "another form": f"<think>{prose(rng)}</think>\\boxed{{{other}}}",
        "lines": f"<think>\n{prose(rng)}\n</think>\n\nSo $\\boxed{{{answer}}}$.\n",
        "no thought": f"\\boxed{{{answer}}}",
        "open thought": f"<think>{prose(rng)} \\boxed{{{answer}}}",
        "text before": f"Well. <think>a</think> \\boxed{{{answer}}}",
        "box inside": f"<think>\\boxed{{{answer}}}</think> {answer}",
        "no box": f"<think>a</think> {answer}",
        "box open": f"<think>a</think> \\boxed{{{answer}",
        "thought twice": f"<think>a</think><think>b</think>\\boxed{{{answer}}}",
        "empty": rng.choice(["", "<think></think>\\boxed{}", "</think><think>\\boxed{1}"]),
    }
    kind = rng.choice([*forms, "honest", "soup"])
    if kind == "soup":
        return kind, soup(rng, ["<think>", "</think>", "\\boxed{", "}", "\n", "1", "a"], 12), "1"
    return kind, forms[kind], truth


def blank(data_source, truth):
    """Whether a ground truth that is a text is blank after verl's own normalisation."""
    reward_score = "verl.utils.reward_score"
    normalize = {
        TASKS["math"][0]: lambda: importlib.import_module(f"{reward_score}.math_reward").strip_string,
        TASKS["dapo-math"][0]: lambda: importlib.import_module(f"{reward_score}.math_dapo").normalize_final_answer,
    }.get(data_source)
    with contextlib.suppress(Exception):
        return isinstance(truth, str) and normalize is not None and normalize()(truth) == ""
    return False


TASKS = {
    "gsm8k": ("openai/gsm8k", gsm8k, gsm8k_keys),
    "math": ("DigitalLearningGmbH/MATH-lighteval", math, math_keys),
    "dapo-math": ("math_dapo", dapo, dapo_keys),
    "f1": ("searchR1_nq", search, search_keys),
    "geometry3k": ("hiyouga/geometry3k", geometry, None),
}


def rows(task, generate, keys):
    rng = Random(task)
    for _ in range(ROWS):
        yield generate(rng)
    for _ in range(KEYS_ROWS if keys else 0):
        yield from keys(rng)
    _, response, truth = generate(rng)
    for unit in ["x", "é", "\\boxed{", "}", "#### 1 ", "Answer:", "<answer>", "</answer>", "\\frac"]:
        yield "huge", unit * (HUGE // len(unit)), truth
        yield "huge", unit * (HUGE // len(unit)) + "\n" + response, truth


def main():
    FOLDER.mkdir(exist_ok=True)
    compute_score = verl_score()
    for task, (data_source, generate, keys) in TASKS.items():
        table = {name: [] for name in ["kind", "response", "ground_truth", "score", "pred", "error"]}
        for kind, response, truth in rows(task, generate, keys):
            result, error = None, None
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    result = compute_score(data_source, response, truth)
            except Exception as raised:
                error = type(raised).__name__
            kind = "key is blank" if blank(data_source, truth) else kind
            details = result if isinstance(result, dict) else {"score": result}
            values = kind, response, json.dumps(truth, ensure_ascii=False), details["score"], details.get("pred"), error
            for column, value in zip(table.values(), values):
                column.append(value)
        types_ = {"score": pyarrow.float64()}
        schema = pyarrow.schema([(name, types_.get(name, pyarrow.string())) for name in table])
        metadata = {"data_source": data_source}
        parquet.write_table(
            pyarrow.table(table, schema.with_metadata(metadata)), FOLDER / f"{task}.parquet",
            compression="zstd", compression_level=19, write_statistics=False,
        )
        scores = {score: table["score"].count(score) for score in sorted(set(table["score"]) - {None})}
        print(task, len(table["kind"]), scores, "raised:", sum(error is not None for error in table["error"]))


if __name__ == "__main__":
    main()
