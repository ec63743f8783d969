"""Writes pairs of honest responses and ground truths with Math-Verify's own scores. The same rows come out each time.

    pip install math-verify==0.9.0 latex2sympy2_extended==1.11.0 sympy==1.14.0 pyarrow
    python tests/parity/math_verify_pairs.py            # writes tests/parity/math-verify.parquet

`host/scoring/tests/scoring/math_verify.rs` scores the same rows with the component `math-verify` and compares.
"""
import sys
from pathlib import Path
from random import Random

import pyarrow
import pyarrow.parquet as parquet
from math_verify import parse, verify

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "plugins/math-verify"))
from latex import as_latex  # noqa: E402

ROWS = 2000
FILE = Path(__file__).parent / "math-verify.parquet"


def integer(rng):
    n = rng.choice([rng.randrange(2, 20), rng.randrange(1000), rng.randrange(1000, 10**7), -rng.randrange(1, 500)])
    return str(n), [f"{n:,}", f"{n}.0", f"\\frac{{{2 * n}}}{{2}}", f"{n}", f"{n}\\text{{ cm}}", f"x={n}"], str(n + 1)


def fraction(rng):
    a, b = rng.randrange(1, 30), rng.choice([2, 3, 4, 5, 7, 8, 9, 16])
    forms = [f"{a}/{b}", f"\\dfrac{{{a}}}{{{b}}}", f"\\frac{{{3 * a}}}{{{3 * b}}}", f"{a / b:.8f}", f"\\frac{a}{b}"]
    return f"\\frac{{{a}}}{{{b}}}", [*forms, f"{a / b:.3f}", f"-\\frac{{{-a}}}{{{b}}}"], f"\\frac{{{a + 1}}}{{{b}}}"


def decimal(rng):
    x = round(rng.uniform(-50, 50), rng.randrange(1, 5))
    return str(x), [f"{x}0", f"{x:.6f}", f"{x}\\%", f"{x}", str(x).replace(".", ","), f"{x * 10}/10"], f"{x + 0.1:.4f}"


def percent(rng):
    n = rng.randrange(1, 100)
    return f"{n}\\%", [f"{n}%", f"{n}", f"{n / 100}", f"{n} percent", f"\\frac{{{n}}}{{100}}"], f"{n + 1}\\%"


def root(rng):
    k, n = rng.randrange(2, 9), rng.choice([2, 3, 5, 6, 7])
    forms = [f"\\sqrt{{{k * k * n}}}", f"{k} \\cdot \\sqrt{n}", f"\\sqrt{{{n}}} \\times {k}", f"{k}\\sqrt{n}", f"{k}*{n}^{{1/2}}"]
    return f"{k}\\sqrt{{{n}}}", [*forms, f"{k * n ** 0.5:.7f}"], f"{k}\\sqrt{{{n + 4}}}"


def multiple_of_pi(rng):
    k, n = rng.randrange(1, 12), rng.choice([1, 2, 3, 4, 6])
    return f"\\frac{{{k}\\pi}}{{{n}}}", [f"\\frac{{{k}}}{{{n}}}\\pi", f"{k}\\pi/{n}", f"\\pi \\cdot \\frac{{{k}}}{{{n}}}"], f"{k + 1}\\pi"


def interval(rng):
    a, b = sorted(rng.sample(range(-20, 30), 2))
    left, right = rng.choice("(["), rng.choice(")]")
    forms = [f"\\left{left}{a}, {b}\\right{right}", f"{left}{a},{b}{right}", f"x \\in {left}{a}, {b}{right}", f"{a} < x < {b}"]
    return f"{left}{a}, {b}{right}", forms, f"{left}{a}, {b + 1}{right}"


def union(rng):
    a, b = sorted(rng.sample(range(-9, 9), 2))
    forms = [f"({b}, \\infty) \\cup (-\\infty, {a})", f"(-\\infty,{a})\\cup({b},+\\infty)", f"x < {a} \\text{{ or }} x > {b}"]
    return f"(-\\infty, {a}) \\cup ({b}, \\infty)", forms, f"(-\\infty, {a}] \\cup ({b}, \\infty)"


def elements(rng):
    items = rng.sample(range(-9, 40), rng.randrange(2, 6))
    mixed = rng.sample(items, len(items))
    text = [", ".join(map(str, each)) for each in (items, mixed)]
    return f"\\{{{text[0]}\\}}", [f"\\{{{text[1]}\\}}", text[0], text[1], " and ".join(map(str, mixed))], f"\\{{{text[0]}, 77\\}}"


def point(rng):
    a, b, c = (rng.randrange(-9, 10) for _ in range(3))
    forms = [f"\\left({a}, {b}, {c}\\right)", f"({a},{b},{c})", f"({a}.0, {b}, {c})", f"{a}, {b}, {c}"]
    return f"({a}, {b}, {c})", forms, f"({b}, {a}, {c + 1})"


def matrix(rng):
    a, b, c, d = (rng.randrange(-9, 10) for _ in range(4))
    body = f"{a} & {b} \\\\ {c} & {d}"
    forms = [f"\\begin{{{kind}}} {body} \\end{{{kind}}}" for kind in ("bmatrix", "pmatrix", "matrix")]
    return f"\\begin{{pmatrix}} {body} \\end{{pmatrix}}", forms, f"\\begin{{pmatrix}} {d} & {b} \\\\ {c} & {a + 1} \\end{{pmatrix}}"


def polynomial(rng):
    p, q = rng.randrange(1, 9), rng.randrange(1, 9)
    x = rng.choice("xnt")
    forms = [f"({x}+{p})({x}+{q})", f"{p * q} + {p + q}{x} + {x}^2", f"{x}({x}+{p + q})+{p * q}", f"({x}+{q})\\left({x}+{p}\\right)"]
    return f"{x}^2+{p + q}{x}+{p * q}", forms, f"({x}+{p})({x}-{q})"


def equation(rng):
    m, c = rng.randrange(2, 9), rng.randrange(1, 20)
    forms = [f"y = {c} + {m}x", f"{m}x + {c}", f"y - {c} = {m}x", f"{m}x - y + {c} = 0", f"y={m}(x+\\frac{{{c}}}{{{m}}})"]
    return f"y={m}x+{c}", forms, f"y={m}x-{c}"


def inequality(rng):
    a = rng.randrange(-9, 20)
    return f"x \\geq {a}", [f"{a} \\leq x", f"x >= {a}", f"[{a}, \\infty)", f"x \\ge {a}"], f"x > {a + 1}"


def imaginary(rng):
    a, b = rng.randrange(1, 9), rng.randrange(2, 9)
    return f"{a}+{b}i", [f"{b}i + {a}", f"{a} + {b} i", f"({a}+{b}i)"], f"{a}-{b}i"


def function(rng):
    k = rng.randrange(2, 6)
    gold, *forms = rng.choice(
        [
            (f"\\log_{{2}} {2**k * 3}", f"{k}+\\log_2 3", f"\\frac{{\\ln {2**k * 3}}}{{\\ln 2}}"),
            (f"\\sin^2(x)+{k}", f"{k}+1-\\cos^2 x", f"{k} + \\sin(x)^2"),
            (f"e^{{{k}x}}", f"\\exp({k}x)", f"(e^x)^{k}"),
            (f"{k}!", f"\\binom{{{k}}}{{1}} \\cdot {k - 1}!", f"{[1, 1, 2, 6, 24, 120][k]}"),
            (f"\\frac{{x}}{{{k}}}", f"x/{k}", f"\\frac1{k}x"),
            (f"2^{{{k}}}", f"{2**k}", f"2**{k}"),
        ]
    )
    return gold, forms, f"\\cos({k}x)"


def word(rng):
    text = rng.choice(["even", "odd", "Tuesday", "blue", "no solution", "A", "B", "AB"])
    return f"\\text{{{text}}}", [text, f"\\text{{ {text}}}", f"\\mathrm{{{text}}}", text.lower()], "\\text{neither}"


def measure(rng):
    n = rng.randrange(5, 180)
    return rng.choice([
        (f"{n}^\\circ", [f"{n}", f"{n}^{{\\circ}}", f"{n} \\text{{ degrees}}", f"{n}°"], f"{n + 1}^\\circ"),
        (f"\\${n}.50", [f"{n}.50", f"\\${n}.5", f"${n}.50"], f"\\${n}.05"),
        (f"{n}\\text{{ cm}}^2", [f"{n}", f"{n} cm^2", f"{n}\\,\\mathrm{{cm}}^2"], f"{n + 2}"),
        (f"{n}_8", [f"{n}", f"{n}_{{8}}"], f"{n}_9"),
        (f"{n} \\times 10^{{3}}", [f"{n}000", f"{n}e3", f"{n} \\cdot 10^3"], f"{n}00"),
    ])  # fmt: skip


KINDS = [
    integer, fraction, decimal, percent, root, multiple_of_pi, interval, union, elements, point, matrix, polynomial,
    equation, inequality, imaginary, function, word, measure,
]  # fmt: skip
WRAPPED = [
    "\\boxed{{{}}}", "So $x$ follows.\n$$\\boxed{{{}}}$$", "The final answer is ${}$. I hope it is correct.", "${}$", "{}",
    "We get 12 and then\n\\[ {} \\]", "Answer: {}", "The answer is \\({}\\).", "**Answer:** {}", "\\boxed{{7}} no, \\boxed{{{}}}",
    "<think>maybe $3$</think> Therefore $\\boxed{{{}}}$.", "It is {} because of this.", "= {}",
]  # fmt: skip


def pair(rng):
    kind = rng.choice(KINDS)
    truth, right, wrong = kind(rng)
    answer = rng.choice([truth, *right, *right, *right, wrong, wrong])
    truth = rng.choice([truth, truth, truth, f"${truth}$", f"\\boxed{{{truth}}}"])
    return {"kind": kind.__name__, "response": rng.choice(WRAPPED).format(answer), "ground_truth": truth}


def main():
    rng = Random(1)
    rows = {}
    while len(rows) < ROWS:
        row = pair(rng)
        rows.setdefault((row["response"], row["ground_truth"]), row)
    rows = list(rows.values())
    for row in rows:
        gold, answer = parse(as_latex(row["ground_truth"])), parse(row["response"])
        if not gold:
            raise SystemExit(f"Math-Verify does not read {row['ground_truth']!r}")
        row["score"] = float(verify(gold, answer))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    parquet.write_table(pyarrow.table(columns), FILE, compression="zstd", compression_level=19)
    print(f"{FILE.name}: {len(rows)} rows, {sum(columns['score']):.0f} right")


main()
