"""Writes the fixture on which `train.ppo_epochs` must agree with verl: the updates of one step over a batch, by verl's
own iterator and loss, with AdamW. The same file comes out each time.

    pip install "torch==2.11.0" safetensors numpy "transformers==5.9.0" "ray==2.60.0" omegaconf codetiming aiohttp
    pip install --no-deps verl==0.9.1 tensordict==0.10.0 "pyvers<0.2" orjson cloudpickle importlib_metadata zipp
    python tests/parity/epochs.py           # writes tests/parity/epochs.json

`host/train/src/parity.rs` compares. The policy is `tests/parity/models/qwen2`, in 64 bits. No weight decays: Gavel
decays matrices only, verl all weights.
"""
import json
import math
import re
from pathlib import Path

import torch
from tensordict import TensorDict
from transformers import AutoModelForCausalLM
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm
from verl.trainer.ppo.core_algos import agg_loss, get_policy_loss_fn, kl_penalty
from verl.utils import tensordict_utils as tu
from verl.workers.config import ActorConfig
from verl.workers.config.actor import PolicyLossConfig

HERE = Path(__file__).resolve().parent
ROWS, PROMPT, RESPONSE, MINI_BATCH, EPOCHS = 8, 4, 6, 4, 3
OPTIMIZER = {"lr": 3e-4, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}
MAX_GRAD_NORM = 0.5


def norm_in_64_bits(self, hidden):
    return self.weight * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def log_probs(model, batch):
    logits = model(input_ids=batch["input_ids"]).logits[:, PROMPT - 1:-1]
    every = logits.log_softmax(-1)
    taken = every.gather(-1, batch["input_ids"][:, PROMPT:, None])[..., 0]
    return taken, -(every.exp() * every).sum(-1)


def main():
    torch.set_num_threads(1)
    # transformers computes norms in 32 bits.
    Qwen2RMSNorm.forward = norm_in_64_bits
    random = torch.Generator().manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(HERE / "models/qwen2", dtype=torch.float64, attn_implementation="sdpa")
    model.eval()
    # Without the padding, token 0, whose embedding transformers does not train.
    ids = torch.randint(1, model.config.vocab_size, (ROWS, PROMPT + RESPONSE), generator=random)
    lengths = torch.tensor([6, 3, 5, 1, 4, 6, 2, 5])
    mask = (torch.arange(RESPONSE)[None] < lengths[:, None]).double()
    of_row = (torch.rand(ROWS, 1, generator=random) * 4 - 2).double()
    batch = TensorDict({"input_ids": ids, "response_mask": mask, "advantages": of_row * mask}, batch_size=[ROWS])
    with torch.no_grad():
        # In 32 bits, as a run records them.
        batch["old_log_probs"] = log_probs(model, batch)[0].float().double()

    config = ActorConfig(
        strategy="fsdp", rollout_n=1, use_dynamic_bsz=True, clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.2,
        clip_ratio_c=1e9, loss_agg_mode="token-mean", policy_loss=PolicyLossConfig(loss_mode="vanilla"),
    )
    loss_fn = get_policy_loss_fn("vanilla")
    optimizer = torch.optim.AdamW(model.parameters(), **OPTIMIZER)
    updates = []
    # The arguments of verl/trainer/ppo/ray_trainer.py and TrainingWorker.train_mini_batch.
    for mini_batch in tu.make_iterator(
            batch, mini_batch_size=MINI_BATCH, epochs=EPOCHS, seed=42, dataloader_kwargs={"shuffle": False}):
        optimizer.zero_grad()
        taken, entropies = log_probs(model, mini_batch)
        mask = mini_batch["response_mask"]
        loss, metrics = loss_fn(
            old_log_prob=mini_batch["old_log_probs"], log_prob=taken, advantages=mini_batch["advantages"],
            response_mask=mask.bool(), loss_agg_mode="token-mean", config=config)
        distances = kl_penalty(mini_batch["old_log_probs"], taken.detach(), "k3")
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        updates.append({
            "loss": loss.item(), "grad_norm": norm.item(), "clip_fraction": metrics["actor/pg_clipfrac"],
            "kl": agg_loss(distances, mask, "token-mean").item(),
            "entropy": agg_loss(entropies, mask, "token-mean").item(),
        })
    rows = [
        {
            "prompt": ids[row, :PROMPT].tolist(), "response": ids[row, PROMPT:PROMPT + lengths[row]].tolist(),
            "logprobs": batch["old_log_probs"][row, :lengths[row]].tolist(), "advantage": of_row[row].item(),
        }
        for row in range(ROWS)
    ]
    norms = {}
    for name, parameter in model.named_parameters():
        # Gavel's matrices hold the rows of several.
        fused = re.sub("(gate|up)_proj", "gate_up_proj", re.sub("[qkv]_proj", "qkv_proj", name))
        norms[fused] = math.hypot(norms.get(fused, 0.0), parameter.detach().norm().item())
    fixture = {
        "epochs": EPOCHS, "mini_batch": MINI_BATCH, "max_grad_norm": MAX_GRAD_NORM, **OPTIMIZER, "rows": rows,
        "updates": updates, "norms": norms,
    }
    (HERE / "epochs.json").write_text(json.dumps(fixture, indent=1) + "\n")


if __name__ == "__main__":
    main()
