"""Trains small tokenizers of the kinds that models have, and writes the results of `transformers` with them:

    pip install transformers==5.23.0
    python tests/parity/tokenizer_cases.py               # writes tests/parity/tokenizer_cases/*

Each folder has a `tokenizer.json` and `cases.json`: texts with their ids and, for each list of ids, the text they give
with and without special tokens. `host/text/tests/text/tokenizers.rs` compares. Training gives another result each time, so
an existing tokenizer is kept: remove its folder to train it again.
"""
import json
from pathlib import Path
from random import Random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

HERE = Path(__file__).parent / "tokenizer_cases"
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "[INST]"]
# Added but not special: they are decoded with the others.
ADDED = ["<tool_call>", "</tool_call>", "<think>"]
GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and then it doesn't. 1 + 1 = 2; 3.14159 is not 22/7.",
    "def main():\n    for i in range(10):\n        print(i)\n\n\nif __name__ == \"__main__\":\n    main()\n",
    "数学は楽しい。我们来算一下：一加一等于二。",
    "Да, очень хорошо. Ça va? Où est la bibliothèque? Straße, Größe, naïve.",
    '{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}',
    "the answer is \\boxed{42}. Therefore, the answer is 42.\n\nAnswer: 42",
] * 4

TEXTS = [
    "", " ", "  ", "\n", "\n\n  \n", "\t", "a", " a", "a ", "  a  b  ", "Hello, world!", "the answer is 42.",
    "don't we'll I'VE", "1234567890 3.14", "数学は楽しい", "Да, ça va?", "مرحبا שלום हिन्दी ไทย", "e\u0301 é ﬁ Å \u212b",
    "🦀👩‍👩‍👧‍👦🇨🇭", "a🦀b", "𝔘𝔫𝔦", "\u0000\u0007\u007f\u0080", "\u200b\ufeff\u00a0\u3000", "\ufffd", "a\ufffdb",
    "<s>", "</s>", "<|im_start|>user\nhi<|im_end|>\n", "a<s>b</s>c", " <s> a", "<s", "<|im_end|", "[INST] x [INST]",
    "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "<think>so</think>", "<<s>>", "<0x41>", "▁a▁", "Ġa",
    "line\r\nbreak\rand\nmore", "tabs\t\tand   spaces", "if x:\n\n\n    y", "''\"\"`` -- ...", "A.B,C;D", "word" * 20,
    "{\"a\": [1, 2, {\"b\": null}]}", "\\boxed{\\frac{1}{2}}", "https://example.org/?a=1&b=2#c", " leading", "trailing ",
    "Größe GRÖSSE größe", "a\u2028b\u0085c", "½ ² ① Ⅷ", "“quotes” – dashes — …",
]


def trained(model, trainer, normalizer=None, pre_tokenizer=None, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in ADDED])
    return tokenizer


def byte_level(**more):
    return trained(
        models.BPE(**more),
        trainers.BpeTrainer(
            vocab_size=420, special_tokens=SPECIAL, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
        normalizers.NFC(),
        pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(GPT4), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]),
        decoders.ByteLevel(),
    )


def byte_level_gpt2():
    return trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=SPECIAL, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
        None, pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel(),
    )


def byte_fallback():
    """SentencePiece's BPE in the library's own terms, as in Llama 2 and Mistral."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = trained(
        models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
        trainers.BpeTrainer(vocab_size=520, special_tokens=SPECIAL[:3] + bytes_, limit_alphabet=60, show_progress=False),
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        None,
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
    )
    # Bytes are ordinary tokens in those models.
    definition = json.loads(tokenizer.to_str())
    definition["added_tokens"] = [token for token in definition["added_tokens"] if not token["content"].startswith("<0x")]
    definition["pre_tokenizer"] = None
    return Tokenizer.from_str(json.dumps(definition))


def unigram():
    return trained(
        models.Unigram(),
        trainers.UnigramTrainer(vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False),
        normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Metaspace(),
        decoders.Metaspace(),
    )


def word_piece():
    return trained(
        models.WordPiece(unk_token="<unk>"),
        trainers.WordPieceTrainer(vocab_size=400, special_tokens=SPECIAL, show_progress=False),
        normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(),
    )


KINDS = {
    "byte_level": byte_level, "byte_level_ignore_merges": lambda: byte_level(ignore_merges=True),
    "byte_level_prefix_space": byte_level_gpt2, "byte_fallback": byte_fallback, "unigram": unigram,
    "word_piece": word_piece,
}


def main():
    for name, make in KINDS.items():
        folder = HERE / name
        if not (folder / "tokenizer.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            make().save(str(folder / "tokenizer.json"), pretty=False)
        fast = PreTrainedTokenizerFast(
            tokenizer_file=str(folder / "tokenizer.json"), bos_token="<s>", eos_token="</s>", unk_token="<unk>",
            clean_up_tokenization_spaces=False,
        )
        random = Random(0)
        lists = [fast.encode(text, add_special_tokens=False) for text in TEXTS]
        # Ids that no text gives: bytes that are not UTF-8, special tokens anywhere.
        lists += [[random.randrange(len(fast)) for _ in range(random.choice([1, 2, 3, 8, 40]))] for _ in range(60)]
        alone = [index for index, token in enumerate(fast.convert_ids_to_tokens(range(len(fast)))) if len(token) == 1 or token.startswith("<0x")]
        lists += [[random.choice(alone) for _ in range(random.choice([2, 5, 30]))] for _ in range(40)]
        cases = {
            "encoded": [{"text": text, "ids": ids} for text, ids in zip(TEXTS, lists)],
            "decoded": [
                {
                    "ids": ids,
                    "text": fast.decode(ids, skip_special_tokens=False),
                    "without_special": fast.decode(ids, skip_special_tokens=True),
                }
                for ids in lists
            ],
        }
        lines = [json.dumps(kind) + ": [\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases[kind]) + "\n]" for kind in cases]
        (folder / "cases.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(f"{name}: {len(fast)} tokens, {len(cases['encoded'])} texts, {len(cases['decoded'])} lists of ids")


if __name__ == "__main__":
    main()
