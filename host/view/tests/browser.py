#!/usr/bin/env python3
"""The page in a real browser: every view of a run, hostile texts, keys, links, a run that grows, and the export.

    browser.py GAVEL RUN [--other RUN] [--shots FOLDER] [--million FOLDER]

It needs Playwright (pip install playwright) and Chromium (apt-get install chromium, or CHROMIUM=path). RUN is read
only; hostile texts are in a run that the test makes.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import time
import urllib.parse

from playwright.sync_api import expect, sync_playwright

HOSTILE = [
    "<script>window.hacked = 1; alert(1)</script>",
    "<img src=x onerror=\"window.hacked = 1; alert(2)\">",
    "<svg onload=\"window.hacked = 1\"><style>body { display: none }</style></svg>",
    "<iframe srcdoc=\"<script>parent.hacked = 1</script>\"></iframe><a href=\"javascript:hacked = 1\">x</a>",
    "safe\u202etxt.exe\u2066 hidden\u200b",
    "\x1b[2J\x1b]0;title\x07 \x9b31m",
    "</script></textarea></pre><base href=http://evil.example/>\u2028${1}",
]
ESCAPES = ["\\u{202e}", "\\u{2066}", "\\u{200b}", "\\u{1b}", "\\u{7}", "\\u{9b}", "\\u{2028}"]


def line(number, text):
    verdict = {"outcome": "scored", "score": number / 10, "metrics": {text: 1.0}, "reason": text, "elapsed_us": 3, "cpu_us": 1,
               "fuel": None, "peak_memory": 1, "stderr": text, "payload": {text: text, "__proto__": f"own {number}"}, "component": text}
    return {"id": f"1.0.{number}", "task": "00", "task_id": text, "data_source": text, "step": 1, "trained_step": 1, "group": 0,
            "sample": number, "trajectory": 0, "prompt": [{"role": text, "content": text}], "prompt_text": text, "status": "completed",
            "messages": [{"role": "assistant", "content": text, "tool_calls": [{"id": "1", "type": "function", "function": {"name": text, "arguments": text}}]},
                         {"role": "tool", "name": text, "content": text}],
            "finish_reason": "stop", "response": text, "turns": 1, "prompt_length": 5, "response_length": 5, "advantage": 0.1,
            "reward": number / 10, "outcome": "scored", "reason": None, "ground_truth": text, "plugins": {text: verdict}}


def hostile_run(folder):
    run = folder / "hostile"
    (run / "trajectories").mkdir(parents=True)
    (run / "plugins").mkdir()
    name = json.dumps(HOSTILE[1])
    (run / "config.toml").write_text(f"# {HOSTILE[0]}\nseed = 1\n[model]\npath = {name}\n[x]\n{name} = {name}\n")
    metrics = {"step": 1, f"reward/{HOSTILE[1]}/mean": 0.5, f"outcome/{HOSTILE[1]}/scored": 3, f"device_wait/{HOSTILE[2]}": 1.5, HOSTILE[0]: 1, "time/timestamp": 1}
    (run / "metrics.jsonl").write_text("".join(json.dumps({**metrics, "step": step}) + "\n" for step in (1, 2)))
    (run / "plugins" / "lineups.json").write_text(json.dumps([{"from_step": 1, "plugins": [{"name": HOSTILE[1], "weight": 1, "path": HOSTILE[0], "component": HOSTILE[2]}]}]))
    lines = "".join(json.dumps(line(number, text), ensure_ascii=False) + "\n" for number, text in enumerate(HOSTILE))
    for folder in (run, run / "validation"):
        (folder / "trajectories").mkdir(parents=True, exist_ok=True)
        (folder / "trajectories" / "step-000001.jsonl").write_text(lines)
    return run


class Served:
    def __init__(self, gavel, *runs):
        self.process = subprocess.Popen([gavel, "view", *map(str, runs)], stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        assert first.startswith("open http://127.0.0.1:"), first
        self.link = first.split()[1]
        self.base = self.link.split("/?")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)


class Watcher:
    """What no page may do."""

    def __init__(self, page):
        self.page, self.wrong = page, []
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: self.wrong.append(f"error {error}"))
        page.on("console", lambda message: message.type == "error" and self.wrong.append(f"console {message.text}"))
        page.on("request", lambda request: self.request(request.url))

    def request(self, url):
        if not re.match(r"(http://127\.0\.0\.1:\d+/|file://|data:|about:)", url):
            self.wrong.append(f"request {url}")

    def check(self):
        assert not self.wrong, self.wrong
        assert self.page.evaluate("window.hacked") is None
        # What texts would have made of themselves.
        made = self.page.evaluate("document.querySelectorAll('main img, main svg, main iframe, main style, main script, main base, body > style').length")
        assert made == 0, f"{made} elements were made of texts"
        assert self.page.evaluate("getComputedStyle(document.body).display") != "none"
        seen = self.page.evaluate("document.body.innerText")
        assert not re.search("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", seen), repr(seen)
        assert self.page.title() != "title"


def until(page, script, seconds=30):
    """Waits until a script holds. (Playwright's own way evaluates a text in the page, which the policy forbids.)"""
    end = time.monotonic() + seconds
    while not page.evaluate(script):
        assert time.monotonic() < end, script
        page.wait_for_timeout(50)


def settle(page):
    page.wait_for_load_state("networkidle") if page.url.startswith("file:") else page.wait_for_timeout(400)


def hostile_views(page, base, watcher, is_file=False):
    for view in ["curves", "samples?run=0", "rewards?run=0", "suspects?run=0", "step?run=0", "evaluation", "evaluation?row=" + urllib.parse.quote(HOSTILE[1]) + "&source=" + urllib.parse.quote(HOSTILE[1]), "run?run=0", *(f"sample?run=0&id=1.0.{number}" for number in range(len(HOSTILE)))]:
        page.goto(f"{base}#{view}")
        page.reload()
        page.wait_for_selector("main > *:not(.note)")
        settle(page)
        # All that is folded too.
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        page.wait_for_timeout(150)
        watcher.check()
        if view.startswith("sample?"):
            text = HOSTILE[int(view[-1])]
            shown = page.inner_text("main")
            plain = text if text.isascii() and "\x1b" not in text else None
            assert plain is None or plain in shown, f"{plain!r} is not shown as it is"
    text = ""
    for number in range(len(HOSTILE)):
        page.goto(f"{base}#sample?run=0&id=1.0.{number}")
        page.wait_for_selector(f"h2:has-text('1.0.{number}')")
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        until(page, f"document.querySelector('main').innerText.includes('\"__proto__\": \"own {number}\"')")
        text += page.inner_text("main")
    for escape in ESCAPES:
        assert escape in text, f"{escape} is not shown"
    assert page.locator(".escape").count() > 0


def attack(browser, served):
    """A page of another site: it reads nothing, frames nothing, and is not answered under another name."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.link)
    page.wait_for_selector("main figure, main .note")
    cookies = context.cookies()
    assert len(cookies) == 1 and cookies[0]["httpOnly"] and cookies[0]["sameSite"] == "Strict", cookies
    assert "token" not in page.url, page.url
    assert page.evaluate("document.cookie") == ""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(["python3", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        try:
            other = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline()).group(0)
            (pathlib.Path(folder) / "evil.html").write_text("<h1>evil</h1>")
            evil = context.new_page()
            evil.goto(f"{other}/evil.html")
            read = evil.evaluate("""async (url) => {
                const tries = [fetch(url, {credentials: 'include'}), fetch(url, {method: 'POST', body: '{}', credentials: 'include', mode: 'no-cors'}).then((answer) => answer.text())];
                return Promise.all(tries.map((attempt) => attempt.then((value) => (typeof value === 'string' ? value : value.text()), () => '')));
            }""", f"{served.base}/api/runs")
            assert read == ["", ""], read
            framed = evil.evaluate("""(url) => new Promise((done) => { const frame = document.createElement('iframe'); frame.src = url; frame.onload = () => { try { done(frame.contentDocument?.body.innerText ?? ''); } catch { done(''); } }; document.body.append(frame); })""", served.base)
            assert "gavel" not in framed.lower(), framed
        finally:
            server.terminate()
            server.wait(10)
    stranger = browser.new_context().new_page()
    stranger.goto(served.base)
    assert "the token is missing" in stranger.inner_text("body")
    context.close()


def tour(page, served, run_count):
    """What a person does: curves, a zoom that stays, a step's samples, one of them by keys, and back."""
    page.goto(f"{served.link}#curves?runs=0")
    page.wait_for_selector("figure canvas")
    first = page.locator("figure.card").first
    box = first.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile("zoom="))
    low, high = map(float, re.search(r"zoom=([\d.e+-]+)(?::|%3A)([\d.e+-]+)", page.url).groups())
    assert low < high
    page.reload()
    page.wait_for_selector("figure canvas")
    expect(page.get_by_role("button", name="whole range")).to_be_visible()
    box = page.locator("figure.card .u-over").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 40)
    expect(page).to_have_url(re.compile(r"#samples\?run=\d+&step_min=(\d+)&step_max=\1"))
    page.wait_for_selector("table.samples tbody tr")
    page.go_back()
    page.wait_for_selector("figure canvas")
    page.keyboard.press("2")
    page.wait_for_selector("table.samples tbody tr")
    until(page, "!document.querySelector('[role=status].note')?.textContent.includes('reading')")
    page.get_by_role("button", name="reward").click()
    expect(page).to_have_url(re.compile("sort=reward&down=1"))
    page.wait_for_selector("th[aria-sort=descending]")
    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h2:has-text('{chosen}')")
    assert page.locator(".message").count() >= 2 and page.locator(".verdict").count() >= 1
    assert page.locator(".sibling").count() > 1
    assert page.evaluate("[...document.getElementById('main').childNodes].every((node) => node.nodeType === 1)"), "stray text"
    before = page.url
    page.keyboard.press("j")
    expect(page).not_to_have_url(before)
    page.keyboard.press("Escape")
    page.wait_for_selector("table.samples")
    assert "sort=reward" in page.url, "the table is as it was"
    page.keyboard.press("/")
    page.keyboard.type("Answer: 1")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("text=Answer"))
    until(page, "document.querySelectorAll('td.preview').length > 0")
    assert all("answer: 1" in text.lower() for text in page.locator("td.preview").all_inner_texts())
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("3")
    page.wait_for_selector("table.heat .cell")
    page.wait_for_selector("section canvas")
    page.locator("table.heat .cell").first.click()
    expect(page).to_have_url(re.compile("reward_min="))
    page.goto(f"{served.base}/#run?run=0")
    page.wait_for_selector("pre.config")
    if run_count > 1:
        page.goto(f"{served.base}/#run?run=0&versus=1")
        page.wait_for_selector("table >> text=difference")
    assert page.evaluate("document.querySelectorAll('input:not([type=hidden]), select').values().filter((e) => !e.labels?.length && !e.getAttribute('aria-label')).toArray().length") == 0, "a control without a label"


def overtaken(page, served):
    """A sample that comes when the table is shown again is not drawn over it."""
    page.goto(f"{served.base}/#samples?run=0")
    page.locator("a.row").first.click()
    page.wait_for_selector("h2:has-text('sample ')")
    held = []
    page.route("**/api/runs/0/samples/*", lambda route: held.append(route))
    page.keyboard.press("j")
    while not held:
        page.wait_for_timeout(20)
    page.keyboard.press("Escape")
    page.wait_for_selector("table.samples tbody tr")
    with page.expect_response("**/api/runs/0/samples/*"):
        held[0].continue_()
    page.unroute("**/api/runs/0/samples/*")
    page.wait_for_timeout(300)
    assert page.locator("table.samples").count() == 1, "a late answer was drawn over the table"


# What plots are made of: the first column is x.
PLOTS = """(() => {
    let uPlotWithNotes;
    window.plots = [];
    Object.defineProperty(window, 'uPlot', { get: () => uPlotWithNotes, set(made) {
        uPlotWithNotes = Object.assign(function (options, data, holder) { window.plots.push(data); return new made(options, data, holder); }, made);
    } });
})()"""


def long_run(folder):
    """9,000 steps, whose outcomes add up to 64, and three samples with rewards whose highest has no short decimal form."""
    run = folder / "long"
    (run / "trajectories").mkdir(parents=True)
    (run / "config.toml").write_text("seed = 1\n")
    metric = lambda step: {"step": step, "outcome/answer/scored": 64 - step % 7, "reward/answer/mean": step % 11, **({"outcome/answer/fault": step % 7} if step % 7 else {})}
    (run / "metrics.jsonl").write_text("".join(json.dumps(metric(step)) + "\n" for step in range(1, 9001)))
    third = lambda number: {**line(number, "text"), "reward": number / 6, "data_source": ["plain", "tur\u202ened", "\u200b"][number], "plugins": {}}
    (run / "trajectories" / "step-000001.jsonl").write_text("".join(json.dumps(third(number)) + "\n" for number in range(3)))
    return run


def long_views(page, base, name):
    """Stacked parts add up at each point, bounds are exact, and names are sent as they are."""
    page.goto(f"{base}#rewards?run=0")
    page.reload()
    page.wait_for_selector("section canvas")
    until(page, "window.plots.some((data) => data.length === 3)")
    x, top, part = page.evaluate("window.plots.filter((data) => data.length === 3).at(-1)")
    assert 2000 < len(x) <= 4000 and all(value == 64 for value in top), f"{name}: {len(x)} points, {set(top)}"
    assert all(58 <= value <= 64 for value in part), name
    page.wait_for_selector("table.heat .cell")
    assert page.locator("table.heat .cell").count() == 3
    for at in range(3):
        page.goto(f"{base}#rewards?run=0")
        page.wait_for_selector("table.heat .cell")
        page.locator("table.heat .cell").nth(at).click()
        page.wait_for_selector(f"a.row:has-text('1.0.{at}')")
    for at, source in enumerate(["plain", "tur\u202ened", "\u200b"]):
        page.goto(f"{base}#samples?run=0")
        page.wait_for_selector("select[name=source]")
        page.wait_for_selector("a.row >> nth=2")
        page.select_option("select[name=source]", value=source)
        until(page, "document.querySelectorAll('a.row').length === 1")
        page.wait_for_selector(f"a.row:has-text('1.0.{at}')")


def packed(text, versions):
    """The tokens of a text, a byte each, as a line has them; the second half is not of the policy."""
    ids = [3 + byte for byte in text.encode()] + [2]
    pack = lambda kind, values: base64.b64encode(struct.pack(f"<{len(values)}{kind}", *values)).decode()
    half = len(ids) // 2
    return {"prompt": "", "response": pack("I", ids), "logprobs": pack("f", [-at / 4 for at in range(len(ids))]), "loss_mask": [half, len(ids) - half],
            "versions": [[version, len(ids) // len(versions)] for version in versions[:-1]] + [[versions[-1], len(ids) - len(ids) // len(versions) * (len(versions) - 1)]]}


def token_run(folder):
    run = folder / "tokens"
    (run / "trajectories").mkdir(parents=True)
    (run / "config.toml").write_text("[model.init]\nhidden_size = 8\n")
    (run / "metrics.jsonl").write_text('{"step":1,"loss":5}\n')
    short = {**line(0, "Größe <b>"), "token_ids": packed("Größe <b>\u202e\n", [1, 2])}
    half = len("Größe <b>\u202e\n".encode()) // 2
    short.update(messages=[{"role": "assistant", "content": "Größe"}], trace={"turns": [{"message": 0, "tokens": half, "finish_reason": "stop"}]})
    # Of the bytes of "Größe", ö has two.
    short["plugins"] = {"judge": {**short["plugins"]["Größe <b>"], "credit": [{"trajectory": 0, "message": 0, "start": 2, "end": 4, "value": -0.5}]}}
    long = {**line(1, "x"), "token_ids": packed("x" * 150_000, list(range(1000)))}
    (run / "trajectories" / "step-000001.jsonl").write_text(json.dumps(short) + "\n" + json.dumps(long) + "\n")
    return run


def token_views(page, base, watcher):
    page.goto(f"{base}#sample?run=0&id=1.0.0")
    page.reload()
    page.get_by_text("tokens of the response").click()
    page.wait_for_selector("text=texts by bytes as tokens")
    tokens = page.locator(".token").all_inner_texts()
    assert tokens == ["G", "r", "\\xc3", "ö", "\\xc3", "ß", "e", " ", "<", "b", ">", "\\xe2", "\\x80", "\\u{202e}", "↵\n", "<|im_end|>"], tokens
    page.locator(".tokens").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    fact = page.inner_text(".note[role=status]:has-text('token 4')")
    assert '"ö"' in fact and "log-prob -0.75" in fact and "policy version 1" in fact and "credit of judge -0.5" in fact, fact
    colours = lambda: page.evaluate("[...document.querySelectorAll('.token')].map((token) => [token.className, token.style.getPropertyValue('--share')])")
    assert [share for _, share in colours()[:8]] == ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35"] and "foreign" in colours()[8][0], colours()
    choose = page.get_by_label("coloured by")
    choose.select_option("version")
    assert [share for _, share in colours()] == ["0"] * 8 + ["1"] * 8, colours()
    choose.select_option("credit judge")
    assert [("below" in kind, share) for kind, share in colours()[:5]] == [(False, ""), (False, ""), (True, "1"), (True, "1"), (False, "")], colours()
    page.goto(f"{base}#sample?run=0&id=1.0.1")
    page.wait_for_selector("h2:has-text('1.0.1')")
    page.get_by_text("tokens of the response").click()
    page.wait_for_selector("text=the first 20,000 of 150,001 tokens")
    watcher.check()


def hacked_run(folder):
    """A run whose format reward rises while a shadow falls, with one text for all tasks, and a judge that fails."""
    run = folder / "hacked"
    (run / "trajectories").mkdir(parents=True)
    (run / "plugins").mkdir()
    (run / "config.toml").write_text("seed = 1\n")
    metric = lambda step: {"step": step, "reward/format/mean": step / 40, "reward/judge/mean": 1 - step / 40, "response_length/mean": 100 + 5 * step}
    (run / "metrics.jsonl").write_text("".join(json.dumps(metric(step)) + "\n" for step in range(1, 41)))
    (run / "plugins" / "lineups.json").write_text(json.dumps([{"from_step": 1, "plugins": [{"name": "format", "weight": 1}, {"name": "judge", "weight": 0}]}]))
    verdict = lambda outcome, score, reason: {"outcome": outcome, "score": score, "metrics": {}, "reason": reason, "elapsed_us": 3}
    def sample(number):
        failed = number % 5 == 4
        judge = verdict("unavailable", None, f"<b>no answer</b> within {number} s") if failed else verdict("scored", 1 - number / 20, None)
        text = f"I have thought about this question at length, and my answer is surely the right one: {number}"
        return {**line(number, text), "response": text, "ground_truth": str(number), "reward": number / 20, "plugins": {"format": verdict("scored", number / 20, None), "judge": judge}}
    (run / "trajectories" / "step-000001.jsonl").write_text("".join(json.dumps(sample(number)) + "\n" for number in range(20)))
    return run


def suspect_views(page, base, watcher):
    page.goto(f"{base}#suspects?run=0")
    page.reload()
    page.wait_for_selector("text=of 20 trajectories")
    suspects = page.locator("ul.suspects li").all_inner_texts()
    assert any("While format rises from" in text and "judge, which has no weight, falls" in text for text in suspects), suspects
    assert any("Responses grow from" in text for text in suspects) and any("2 answers with a mean reward" in text for text in suspects), suspects
    failed = page.inner_text("section.failure")
    assert "judge: 4 unavailable" in failed and "<b>no answer</b> within # s" in failed, failed
    watcher.check()
    page.locator("table.correlations tbody tr").nth(1).locator("a").nth(1).click()
    expect(page).to_have_url(re.compile("plugin=judge&against=format"))
    page.wait_for_selector("th[aria-sort=descending]:has-text('off by')")
    page.wait_for_selector("a.row >> nth=19")
    gaps = page.locator("td[data-name='off by']").all_inner_texts()
    assert gaps[16:] == ["–"] * 4, f"those without a score come last: {gaps}"
    gaps = list(map(float, gaps[:16]))
    assert gaps == sorted(gaps, reverse=True) and gaps[0] == 1, gaps
    page.get_by_label("off by").select_option("")
    expect(page).not_to_have_url(re.compile("against"))
    watcher.check()


def timed_run(folder):
    """A step whose generation takes 3 of 5 seconds, with requests of a judge, tools, and a sample that takes long."""
    run = folder / "timed"
    (run / "trajectories").mkdir(parents=True)
    (run / "calls").mkdir()
    (run / "config.toml").write_text("seed = 1\n")
    times = {"time/generate": 3, "time/wait_for_reward": 0.5, "time/update": 1, "time/step": 5, "time/validate": 7, "device_wait/reward/judge": 0.25, "device_wait/tool/search": 0.25, "device_wait/total": 0.5, "perf/device_idle": 0.1}
    (run / "metrics.jsonl").write_text("".join(json.dumps({"step": step, **times, "time/timestamp": 1000 + 10 * step}) + "\n" for step in (1, 2, 3)))
    call = lambda number, **more: {"for": f"2.0.{number}", "plugin": "judge", "input": "a", "seed": 1, "kind": "chat", "endpoint": "<b>big</b>", "timestamp": 1011 + number / 2, "waited": 0.5, "ran": 1.5, "question_bytes": 1, "answer_bytes": 1, "ended": "answered", **more}
    (run / "calls" / "step-000002.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [call(0), call(1), call(2, ended="failed", error="no answer")]))
    slow = {**line(1, "slow"), "id": "2.0.1", "step": 2, "rollout": {"generating": [1.5, 0.5], "in_tools": [4], "tool_uses": [{"name": "search", "ending": "answered", "turn": 0, "seconds": 4}]}}
    quick = {**line(0, "quick"), "id": "2.0.0", "step": 2}
    (run / "trajectories" / "step-000002.jsonl").write_text(json.dumps(quick) + "\n" + json.dumps(slow) + "\n")
    return run


def step_views(page, base, watcher):
    page.goto(f"{base}#step?run=0&step=2")
    page.reload()
    page.wait_for_selector("text=Phases of step 2")
    table_of = lambda name: page.get_by_role("region", name=name, exact=True).inner_text()
    phases = table_of("Phases")
    for text in ["generation\t3.0 s\t60 %", "waiting for rewards\t500.0 ms\t10 %", "the rest\t500.0 ms\t10 %", "the step\t5.0 s", "validation after it\t7.0 s"]:
        assert text in phases, phases
    assert "tool/search" in table_of("Waits")
    assert "judge\tchat\t<b>big</b>\t3\t1\t1.5 s\t4.5 s\t2.0 s" in table_of("Requests"), table_of("Requests")
    lanes = page.locator(".lane")
    assert [lanes.nth(at).locator(".call").count() for at in range(lanes.count())] == [1, 1, 1] and page.locator(".failed-call").count() == 1
    assert "From 1.0 s to 4.0 s after the end of the step before" in page.inner_text("main")
    rows = page.get_by_role("region", name="The longest samples").locator("tbody tr").all_inner_texts()
    assert len(rows) == 2 and rows[0].startswith("2.0.1\t6.0 s\t2.0 s") and "search 4.0 s" in rows[0], rows
    page.keyboard.press("j")
    page.wait_for_selector("text=Phases of step 3")
    assert "No plugin made a request in this step" in page.inner_text("main")
    page.goto(f"{base}#step?run=0&step=2")
    page.wait_for_selector("text=Phases of step 2")
    page.locator("a.call").first.click()
    page.wait_for_selector("h2:has-text('2.0.0')")
    page.goto(f"{base}#step?run=0&step=9")
    page.wait_for_selector("[role=alert]")
    watcher.wrong = [text for text in watcher.wrong if "404" not in text and "ERR_FILE_NOT_FOUND" not in text]
    watcher.check()


def branched_run(folder):
    """A sample whose three trajectories begin alike, and a group of a good and a bad answer."""
    run = folder / "branched"
    (run / "trajectories").mkdir(parents=True)
    (run / "config.toml").write_text("seed = 1\n")
    (run / "metrics.jsonl").write_text('{"step":1,"loss":5}\n')
    say = lambda role, text: {"role": role, "content": text}
    shared = [say("assistant", "<b>plan</b>"), say("user", "go on")]
    ends = [[*shared, say("assistant", "left")], [*shared, say("assistant", "right")], [say("assistant", "another plan")]]
    lines = [{**line(0, "first"), "trajectory": at, "prompt": [say("user", "the question")], "messages": end} for at, end in enumerate(ends)]
    lines[0].update(response="the answer <i>is</i> surely four", reward=1.0, plugins={"judge": {**lines[0]["plugins"]["first"], "score": 0.75}})
    bad = {**line(1, "second"), "response": "the answer <i>is</i> perhaps five, or so", "reward": 0.25, "response_length": 9, "plugins": {"judge": {**line(1, "second")["plugins"]["second"], "score": 0.5}}}
    (run / "trajectories" / "step-000001.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*lines, bad]))
    return run


def branch_views(page, base, watcher):
    page.goto(f"{base}#sample?run=0&id=1.0.0")
    page.reload()
    page.wait_for_selector(".branches")
    tree = page.evaluate("""(() => {
        const read = (item) => [[...item.children].filter((child) => child.className === 'branch-message').map((child) => child.textContent).join('|') || item.querySelector('button').textContent, ...[...item.querySelectorAll(':scope > ul > li')].map(read)];
        return [...document.querySelectorAll('.branches > ul > li')].map(read);
    })()""")
    assert tree == [["user the question", ["assistant <b>plan</b>|user go on", ["assistant left", ["trajectory 0"]], ["assistant right", ["trajectory 1"]]], ["assistant another plan", ["trajectory 2"]]]], tree
    page.get_by_role("button", name="trajectory 1").click()
    until(page, "document.activeElement.textContent.includes('right')")
    rows = page.get_by_role("region", name="The best and the worst").locator("tbody tr").all_inner_texts()
    assert rows == ["reward\t1\t0.25\t+0.75", "judge\t0.75\t0.5\t+0.25", "tokens\t5\t9\t-4"], rows
    assert page.locator(".contrast mark").all_inner_texts() == [" surely", " four", " perhaps", " five,", " or", " so"], page.locator(".contrast mark").all_inner_texts()
    page.goto(f"{base}#sample?run=0&id=1.0.1")
    page.wait_for_selector("h2:has-text('1.0.1')")
    assert page.locator(".branches").count() == 0
    watcher.check()


def evaluated_run(folder):
    """Two validations of 40 rows with two answers each, and saved answers of another model that are better."""
    run = folder / "evaluated"
    (run / "validation" / "trajectories").mkdir(parents=True)
    (run / "config.toml").write_text('[data]\naccuracy = "judge"\n')
    (run / "metrics.jsonl").write_text('{"step":1,"loss":5}\n')
    def answer(row, sample, is_right, text):
        score = float(is_right)
        return {**line(row, text), "id": f"1.{row}.{sample}", "task_id": f"rows/{row}", "data_source": "odd" if row % 2 else "even", "sample": sample, "prompt": [{"role": "user", "content": f"<b>question {row}</b>"}],
                "response": text, "reward": score, "plugins": {"judge": {**line(0, "x")["plugins"]["x"], "score": score}, "other": {**line(0, "x")["plugins"]["x"], "score": 0.5}}}
    for step, most in ((10, 2), (20, 5)):
        lines = [answer(row, sample, (row + sample) % 10 < most, f"<i>step {step}</i>") for row in range(40) for sample in (0, 1)]
        (run / "validation" / "trajectories" / f"step-{step:06}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    saved = [{**answer(row, sample, row != 3, "<u>saved</u>"), "id": f"rows/{row}"} for row in range(40) for sample in (0, 1)]
    for one in saved:
        del one["task_id"]
    (folder / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in saved))
    return run, folder / "answers.jsonl"


def evaluation_views(page, base, watcher):
    page.goto(f"{base}#evaluation?a=1&b=0")
    page.reload()
    page.wait_for_selector("text=Over the steps of the run")
    results = page.get_by_role("region", name="Results by data source")
    ours, theirs = [results.nth(at).locator("tbody tr").all_inner_texts() for at in (0, 1)]
    assert [row.split("\t")[:2] for row in ours] == [["even", "20"], ["odd", "20"], ["all", "40"]], ours
    assert ours[2].split("\t")[2].startswith("0.5 (0.") and ours[2].split("\t")[3].startswith("50.0 (") and ours[2].split("\t")[4].startswith("60.0 ("), ours
    assert theirs[2].split("\t")[3].startswith("20.0 ("), theirs
    low, high = map(float, re.search(r"\(([\d.]+) to ([\d.]+)\)", ours[2].split("\t")[3]).groups())
    assert 30 < low < 50 < high < 70, (low, high)
    text = page.inner_text("main")
    assert "evaluated, after step 20 is 30.0 points above evaluated, after step 10 over 40 common rows" in text and "The interval leaves out 0" in text and "better in 16 rows and worse in 0" in text, text
    needed = int(re.search(r"in four of five evaluations of (\d+) rows", text).group(1))
    assert 5 < needed < 40, needed
    validations = page.get_by_role("region", name="Validations").locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in validations] == ["10", "20"] and validations[1].split("\t")[2].startswith("50.0 ("), validations
    page.wait_for_selector("figure canvas")
    page.get_by_label("results of").select_option(label=page.get_by_label("results of").locator("option").last.inner_text())
    page.wait_for_selector("text=worse in 0")
    until(page, "document.querySelector('main').innerText.includes('answers.jsonl is')")
    page.get_by_role("region", name="Rows in which they differ").get_by_role("link").first.click()
    page.wait_for_selector("h2:has-text('row rows/')")
    pane = page.locator(".two.even").inner_text()
    assert "<u>saved</u>" in pane and "<i>step" in pane and "<b>question" in page.inner_text("main"), pane
    page.get_by_label("right by").select_option("-")
    expect(page).to_have_url(re.compile("by=-"))
    page.wait_for_selector("table >> text=mean reward")
    watcher.check()


def growing(page, gavel, folder):
    """A run that writes while its page is open."""
    run = folder / "growing"
    (run / "trajectories").mkdir(parents=True)
    (run / "config.toml").write_text("seed = 1\n")
    metrics = run / "metrics.jsonl"
    metrics.write_text('{"step":1,"loss":5}\n{"step":2,"loss":4}\n')
    with Served(gavel, run) as served:
        page.goto(served.link)
        page.wait_for_selector("figure canvas")
        assert "4" in page.locator("figure .legend").first.inner_text()
        with metrics.open("a") as file:
            file.write('{"step":3,"loss":0.125,"kl":7}\n')
        page.wait_for_selector("figcaption:has-text('kl')", timeout=10000)
        until(page, "[...document.querySelectorAll('.legend')].some((legend) => legend.textContent.includes('0.125'))")
        # Two questions at once for the same new row.
        held = []
        page.route("**/series", lambda route: held.append(route))
        slider = "document.querySelector('input[type=range]')"
        for count in (1, 2):
            page.evaluate(f"{slider}.dispatchEvent(new Event('input'))")
            while len(held) < count:
                page.wait_for_timeout(20)
        with metrics.open("a") as file:
            file.write('{"step":4,"loss":0.25}\n')
        for route in held:
            route.continue_()
        page.unroute("**/series")
        until(page, "window.plots.filter((data) => data[0].includes(4)).length > 1")
        page.wait_for_timeout(300)
        doubled = page.evaluate("window.plots.filter((data) => new Set(data[0]).size !== data[0].length)")
        assert not doubled, doubled
        page.goto(f"{served.base}/#samples?run=0")
        page.wait_for_selector("text=/records no samples|recorded no sample/")
        (run / "part").write_text(json.dumps(line(0, "new text")) + "\n")
        (run / "part").rename(run / "trajectories" / "step-000003.jsonl")
        with metrics.open("a") as file:
            file.write('{"step":5,"loss":0.1}\n')
        page.wait_for_selector("td.preview:has-text('new text')", timeout=15000)
        shutil.rmtree(run)
        page.wait_for_selector("#runs .failed", timeout=15000)


VIEWS = {"curves": "curves?q=", "samples": "samples?run=0&sort=reward&down=1", "sample": None, "rewards": "rewards?run=0", "suspects": "suspects?run=0", "step": "step?run=0", "evaluation": "evaluation", "run": "run?run=0&versus=1"}


def shots(browser, served, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ["light", "dark"]:
        for width in [1280, 400]:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            page.goto(served.link)
            page.wait_for_selector("figure canvas")
            for name, view in VIEWS.items():
                if view is None:
                    page.locator("a.row").nth(3).click()
                else:
                    page.goto(f"{served.base}/#{view}")
                page.wait_for_timeout(1500)
                wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert wide <= 0, f"{name} is {wide} pixels too wide at {width}"
                page.screenshot(path=str(folder / f"{name}-{scheme}-{width}.png"))
            context.close()


def paint(browser, served):
    page = browser.new_page()
    page.goto(served.link)
    page.wait_for_selector("figure canvas")
    times = page.evaluate("performance.getEntriesByType('paint').map((entry) => [entry.name, entry.startTime])")
    page.reload()
    start = time.monotonic()
    page.wait_for_selector("figure canvas")
    print("paint", {name: round(at) for name, at in times}, "first plot after a reload", round((time.monotonic() - start) * 1e3), "ms")
    page.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gavel")
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--other", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--million", type=pathlib.Path)
    given = parser.parse_args()
    runs = [run for run in (given.run, given.other) if run]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"] if os.geteuid() == 0 else [])
        with Served(given.gavel, *runs) as served:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            watcher = Watcher(page)
            tour(page, served, len(runs))
            overtaken(page, served)
            watcher.check()
            page.close()
            print("tour: ok")
            paint(browser, served)
            attack(browser, served)
            print("attacks from other pages: ok")
            if given.shots:
                shots(browser, served, given.shots)
                print(f"screenshots: {given.shots}")
        run = hostile_run(folder)
        with Served(given.gavel, run) as served:
            page = browser.new_page()
            watcher = Watcher(page)
            page.goto(served.link)
            hostile_views(page, f"{served.base}/", watcher)
            page.close()
            print("hostile texts: ok")
        page = browser.new_page()
        page.add_init_script(PLOTS)
        growing(page, given.gavel, folder)
        page.close()
        print("a run that grows: ok")
        page = browser.new_page()
        page.add_init_script(PLOTS)
        run_of_many = long_run(folder)
        with Served(given.gavel, run_of_many) as served:
            page.goto(served.link)
            page.wait_for_selector("figure canvas")
            long_views(page, f"{served.base}/", "served")
        subprocess.run([given.gavel, "view", str(run_of_many), "--export", str(folder / "long-page")], check=True)
        long_views(page, f"file://{folder}/long-page/index.html", "exported")
        page.close()
        print("a run of many steps: ok")
        page = browser.new_page()
        watcher = Watcher(page)
        run_of_tokens = token_run(folder)
        with Served(given.gavel, run_of_tokens) as served:
            page.goto(served.link)
            page.wait_for_selector("figure canvas")
            token_views(page, f"{served.base}/", watcher)
        subprocess.run([given.gavel, "view", str(run_of_tokens), "--export", str(folder / "token-page")], check=True)
        token_views(page, f"file://{folder}/token-page/index.html", watcher)
        page.close()
        print("texts of tokens: ok")
        page = browser.new_page()
        watcher = Watcher(page)
        run_that_hacks = hacked_run(folder)
        with Served(given.gavel, run_that_hacks) as served:
            page.goto(served.link)
            page.wait_for_selector("figure canvas")
            suspect_views(page, f"{served.base}/", watcher)
        subprocess.run([given.gavel, "view", str(run_that_hacks), "--export", str(folder / "hack-page")], check=True)
        suspect_views(page, f"file://{folder}/hack-page/index.html", watcher)
        page.close()
        print("suspects: ok")
        page = browser.new_page()
        watcher = Watcher(page)
        run_with_times = timed_run(folder)
        with Served(given.gavel, run_with_times) as served:
            page.goto(served.link)
            page.wait_for_selector("figure canvas")
            step_views(page, f"{served.base}/", watcher)
        subprocess.run([given.gavel, "view", str(run_with_times), "--export", str(folder / "timed-page")], check=True)
        step_views(page, f"file://{folder}/timed-page/index.html", watcher)
        page.close()
        print("steps: ok")
        page = browser.new_page()
        watcher = Watcher(page)
        run_with_branches = branched_run(folder)
        with Served(given.gavel, run_with_branches) as served:
            page.goto(served.link)
            page.wait_for_selector("figure canvas")
            branch_views(page, f"{served.base}/", watcher)
        subprocess.run([given.gavel, "view", str(run_with_branches), "--export", str(folder / "branched-page")], check=True)
        branch_views(page, f"file://{folder}/branched-page/index.html", watcher)
        page.close()
        print("branches: ok")
        page = browser.new_page()
        watcher = Watcher(page)
        evaluated, saved = evaluated_run(folder)
        with Served(given.gavel, evaluated, saved) as served:
            page.goto(served.link)
            page.wait_for_selector("figure canvas")
            evaluation_views(page, f"{served.base}/", watcher)
        subprocess.run([given.gavel, "view", str(evaluated), str(saved), "--export", str(folder / "evaluated-page")], check=True)
        evaluation_views(page, f"file://{folder}/evaluated-page/index.html", watcher)
        with Served(given.gavel, saved) as served:
            page.goto(f"{served.link}#evaluation")
            page.wait_for_selector("h2:has-text('answers.jsonl')")
            page.keyboard.press("1")
            page.wait_for_selector("text=no run is shown here")
        watcher.check()
        page.close()
        print("evaluations: ok")
        subprocess.run([given.gavel, "view", str(run), "--export", str(folder / "page")], check=True)
        page = browser.new_page()
        watcher = Watcher(page)
        page.goto(f"file://{folder}/page/index.html")
        hostile_views(page, f"file://{folder}/page/index.html", watcher, True)
        page.close()
        subprocess.run([given.gavel, "view", str(given.run), "--export", str(folder / "demo")], check=True)
        page = browser.new_page()
        watcher = Watcher(page)
        page.goto(f"file://{folder}/demo/index.html")
        page.wait_for_selector("figure canvas")
        page.goto(f"file://{folder}/demo/index.html#samples?run=0&sort=reward&down=1&outcome=scored&text=Answer")
        page.wait_for_selector("a.row")
        page.locator("a.row").first.click()
        page.wait_for_selector(".verdict")
        page.goto(f"file://{folder}/demo/index.html#rewards?run=0")
        page.wait_for_selector("table.heat .cell")
        watcher.check()
        page.close()
        print("export: ok")
        if given.million:
            with Served(given.gavel, given.million) as served:
                page = browser.new_page()
                started = time.monotonic()
                page.goto(served.link)
                page.wait_for_selector("figure canvas")
                print("million: first plot", round((time.monotonic() - started) * 1e3), "ms")
                page.goto(f"{served.base}/#samples?run=0")
                started = time.monotonic()
                page.wait_for_selector("a.row")
                print("million: first rows", round((time.monotonic() - started) * 1e3), "ms")
                until(page, "!document.querySelector('p.note[role=status]').textContent.includes('reading')", seconds=300)
                print("million: index complete after", round(time.monotonic() - started, 1), "s")
                for view in ["samples?run=0&sort=reward&down=1", "samples?run=0&outcome=fault", "samples?run=0&reward_min=0.9&source=math&end=length"]:
                    page.goto(f"{served.base}/#{view}")
                    page.wait_for_timeout(1500)
                    print("million:", view, page.inner_text("p.note[role=status]"))
                page.close()
        browser.close()
    print("all ok")


if __name__ == "__main__":
    main()
