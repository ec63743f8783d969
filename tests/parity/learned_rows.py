"""Renders rows to learn from with the chat templates in `chat_templates/` as `transformers` does: the prompt that asks for
an answer, and the conversation with it. Writes both:

    pip install transformers==5.24.0
    python tests/parity/learned_rows.py                        # writes tests/parity/chat_templates/learned.json

A test in `host/pipeline/src/rows/sft_rows/` compares what `gavel sft` learns with what the conversation has after the prompt.
"""
import json

from chat_templates import HERE, PARIS, TOOLS, assistant, outcome, shaped, system, takes, tool, user

ASK = [user("2+2?")]
SAID = "two and two.\n</think>\n\n4"
ANSWERS = {
    "plain": [assistant("4")],
    "closing": [assistant(SAID)],
    "both": [assistant("<think>\n" + SAID)],
    "both-closely": [assistant("<think>two and two.</think>4")],
    "reasoning": [assistant("4", reasoning_content="two and two.")],
    "spaces": [assistant("  4\n\n")],
}
EARLIER = [system("Be brief."), user("1+1?"), assistant("<think>\none and one.\n</think>\n\n2"), user("2+2?")]
CALLED = [user("Paris?"), assistant("", PARIS, reasoning_content="I ask."), tool("sunny")]

# name: (prompt, completion, tools, variables)
ROWS = {}
for thinking, variables in [("", {}), ("-off", {"enable_thinking": False}), ("-on", {"enable_thinking": True})]:
    for name, completion in ANSWERS.items():
        ROWS[name + thinking] = (ASK, completion, None, variables)
    ROWS["later" + thinking] = (EARLIER, ANSWERS["both"], None, variables)
    ROWS["later-reasoning" + thinking] = (EARLIER, ANSWERS["reasoning"], None, variables)
    ROWS["call" + thinking] = (CALLED[:1], CALLED[1:2], "weather", variables)
    ROWS["after-call" + thinking] = (CALLED, [assistant("It is sunny.", reasoning_content="It says so.")], "weather", variables)
ROWS["after-assistant"] = ([user("Hi"), assistant("The answer")], [assistant("is 4")], None, {})
ROWS["date"] = (ASK, ANSWERS["plain"], None, {"date_string": "1 Jan 2020", "reasoning_effort": "high"})


def main():
    rows = {
        name: {"prompt": prompt, "completion": completion, "tools": tools and TOOLS[tools], "chat_template_kwargs": variables}
        for name, (prompt, completion, tools, variables) in ROWS.items()
    }
    rendered = {}
    for path in sorted(HERE.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        if "strftime_now" in source:
            continue  # The clock of a run does not stand still.
        form = takes(source)
        rendered[path.stem] = {
            name: {
                "asked": outcome(source, shaped(row["prompt"], *form), row["tools"], True, **row["chat_template_kwargs"]),
                "whole": outcome(
                    source, shaped(row["prompt"] + row["completion"], *form), row["tools"], False, **row["chat_template_kwargs"]
                ),
            }
            for name, row in rows.items()
        }
        continues = sum(
            result["whole"].get("text", "").startswith(result["asked"].get("text", "?")) for result in rendered[path.stem].values()
        )
        print(f"{path.stem}: {continues} of {len(rows)} conversations continue their prompt")
    text = json.dumps({"rows": rows, "rendered": rendered}, ensure_ascii=False, indent=0)
    (HERE / "learned.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
