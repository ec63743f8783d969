"""Writes `preference.json`, the fixture of `host/train/tests/train/preference.rs`: what TRL's own losses of a reward
model and of DPO give for small models of `tests/parity/models/`.

    pip install "trl==1.16.0" "transformers==5.23.0" "torch==2.11.0" accelerate datasets safetensors
    python tests/parity/preference.py

`RewardTrainer.compute_loss` and `DPOTrainer._compute_loss` are called on 64-bit models; of their trainers, they see only
the settings that they read. The gradients are those of autograd through them.
"""

import json
import pathlib
import random
from collections import defaultdict
from types import SimpleNamespace

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.reward_trainer import RewardTrainer

FOLDER = pathlib.Path(__file__).parent
VOCAB, PAIRS = 61, 6


class WithLogProbs(torch.nn.Module):
    """A language model with the output that TRL's fused head has: a log-probability for each token but the first."""

    is_gradient_checkpointing = False

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, labels, **_):
        logits = self.model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
        labels = labels[:, 1:]
        chosen = logits.log_softmax(-1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        log_probs = chosen.masked_fill(labels == -100, 0.0)
        # TRL reports these, too; the loss does not depend on them.
        unused = torch.zeros_like(log_probs).detach()
        return SimpleNamespace(log_probs=log_probs, entropy=unused, mean_logits=unused, is_top1=unused.bool())


def trainer(model, **more):
    accelerator = SimpleNamespace(
        gather=lambda x: x, gather_for_metrics=lambda x: x, device=torch.device("cpu"), unwrap_model=lambda x: x
    )
    return SimpleNamespace(
        model=model, accelerator=accelerator, _metrics=defaultdict(lambda: defaultdict(list)), _total_train_tokens=0,
        _tp_size=1, aux_loss_enabled=False, **more
    )


def padded(rows):
    width = max(map(len, rows))
    # The padding of these models is 0, which no row has.
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return ids, (ids != 0).long()


def draw(random, least, most):
    return [random.randrange(3, VOCAB) for _ in range(random.randint(least, most))]


def pairs(seed):
    source = random.Random(seed)
    rows = []
    for _ in range(PAIRS):
        prompt = draw(source, 1, 9)
        rows.append((prompt, draw(source, 1, 12), draw(source, 1, 12)))
    return rows


def gradients(model):
    """The norm of the gradient of each weight."""
    return {name: weight.grad.norm().item() for name, weight in model.named_parameters() if weight.grad is not None}


def numbers(trainer, mode="train"):
    return {name: float(values[-1]) for name, values in trainer._metrics[mode].items()}


def reward_model(name, margins, coefficient, seed):
    model = AutoModelForSequenceClassification.from_pretrained(FOLDER / "models" / name, dtype=torch.float64)
    model.train()
    rows = pairs(seed)
    ids, mask = padded([p + c for p, c, _ in rows] + [p + r for p, _, r in rows])
    inputs = dict(input_ids=ids, attention_mask=mask)
    if margins:
        inputs["margin"] = torch.tensor(margins, dtype=torch.float64)
    this = trainer(model, args=SimpleNamespace(center_rewards_coefficient=coefficient))
    loss = RewardTrainer.compute_loss(this, lambda margin=None, **more: model(**more), inputs)
    loss.backward()
    found = numbers(this)
    return dict(
        model=name, pairs=rows, margins=margins or [0.0] * PAIRS, center_rewards_coefficient=coefficient or 0.0,
        loss=loss.item(), accuracy=found["accuracy"], margin=found["margin"], gradients=gradients(model),
    )


def dpo(policy, reference, beta, seed):
    load = lambda name: AutoModelForCausalLM.from_pretrained(FOLDER / "models" / name, dtype=torch.float64)
    model, frozen = load(policy), load(reference)
    rows = pairs(seed)
    ids, mask = padded([p + c for p, c, _ in rows] + [p + r for p, _, r in rows])
    completion = torch.zeros_like(ids)
    for row, (prompt, response) in enumerate([(p, c) for p, c, _ in rows] + [(p, r) for p, _, r in rows]):
        completion[row, len(prompt):len(prompt) + len(response)] = 1
    this = trainer(
        WithLogProbs(model), ref_model=WithLogProbs(frozen), ld_alpha=None, precompute_ref_logps=False, beta=beta,
        label_smoothing=0.0, f_divergence_type="reverse_kl", loss_types=["sigmoid"], loss_weights=[1.0],
        args=SimpleNamespace(gradient_checkpointing_kwargs=None, rpo_alpha=None), use_weighting=False,
    )
    inputs = dict(input_ids=ids, attention_mask=mask, completion_mask=completion)
    loss = DPOTrainer._compute_loss(this, this.model, inputs, False)
    loss.backward()
    found = numbers(this)
    return dict(
        model=policy, reference=reference, pairs=rows, beta=beta, loss=loss.item(),
        metrics={key: value for key, value in found.items() if key.split("/")[0] in ("rewards", "logps")},
        gradients=gradients(model),
    )


CASES = dict(
    reward_model=[
        reward_model("qwen2-classifier", None, None, 1),
        reward_model("qwen2-classifier", [0.0, 0.5, 1.0, 2.0, 0.25, 4.0], 0.1, 2),
    ],
    dpo=[dpo("qwen2", "llama", 0.1, 3), dpo("qwen3", "qwen2", 0.5, 4)],
)
(FOLDER / "preference.json").write_text(json.dumps(CASES) + "\n")
