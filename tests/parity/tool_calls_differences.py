"""Where Gavel reads a reply otherwise than the reference on purpose: for each reason, the cases of each form."""

DIFFERENCES = {
    "a reply that is cut off has no call, since nobody knows how its arguments went on": {
        "*": ["cut-at-1-of-4", "cut-at-2-of-4", "cut-at-3-of-4", "second-cut", "only-the-mark"],
    },
    "a thought has no calls, and stays in the content": {"*": ["thought", "mark-in-thought", "call-in-thought"]},
    "text after calls and between them stays in the content": {"*": ["text-after", "sections-with-text"]},
    "any mark may stand in an argument: what follows the mark tells whether it ends the argument": {
        "*": [
            "closing-mark-in-text", "both-marks-in-text", "marks-of-others-in-text",
            "end-of-value-in-text", "end-of-function-in-text", "end-of-call-in-text", "call-in-text",
        ],
    },
    "what is no call stays in the content, and the model is told why": {
        "*": [
            "nothing-inside", "only-the-end", "value-without-end", "function-without-end", "text-between",
            "no-function", "no-name", "no-brace", "no-value", "no-end-of-text", "no-prefix", "no-index",
            "brace-missing", "not-json", "a-list", "one-of-two-broken", "empty-arguments", "json-inside",
            "key-without-value", "key-without-end",
        ],
    },
    "the agent answers a call of an unknown function, so that the model learns of it": {
        "glm": ["unknown-function", "dashes-in-name"],
        "minimax_m2": ["unknown-function", "dashes-in-name"],
    },
    "numbers in lists and objects are numbers": {"gemma4": ["types", "large-numbers", "nested-lists"]},
    "the reference reads texts alone, each as JSON where it can, without lists, objects, numbers and white space": {
        "function_gemma": [
            "two", "three", "types", "number-as-text", "negative", "zero", "large-numbers", "empty-values",
            "nested-lists", "nested-objects", "json-in-text", "dashes-in-name", "white-space", "quoted-keys",
            "bare-text",
        ],
    },
    "the reference looks for calls with a regular expression that knows no line breaks and one kind of name": {
        "pythonic": ["dashes-in-name", "dotted-name", "on-lines"],
    },
    "the reference wants the head of a call in one form, and its end; the model writes others, and its turn may end": {
        "harmony": ["without-constraint", "recipient-of-the-role", "recipient-in-analysis", "ended-by-the-turn"],
    },
    "the name of a function has its namespace, unless that is `functions`": {"harmony": ["other-namespace"]},
    "the reference returns the prompt, or part of a message that it holds back": {
        "harmony": ["no-call", "empty", "final", "thought-only", "no-head"],
    },
}
