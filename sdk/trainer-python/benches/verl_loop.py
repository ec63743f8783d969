"""verl's reward loop on the CPU, without a policy: what the scripts beside this one measure. They need these packages:

    pip install torch==2.11.0 transformers==5.9.0 ray==2.60.0 omegaconf codetiming aiohttp orjson pyarrow
    pip install cloudpickle importlib_metadata
    pip install --no-deps verl==0.9.1 tensordict==0.10.0 'pyvers<0.2'
    cargo xtask wheel && pip install target/wheels/*.whl componentize-py==0.25.1
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="",
                  RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0", OMP_NUM_THREADS="1")
import numpy
import ray
import torch
import verl
from omegaconf import OmegaConf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from verl import DataProto
from verl.experimental.reward_loop import RewardLoopManager

WORKERS = 2
folder = Path(tempfile.mkdtemp())
checkpoint = folder / "model"


def write_tokenizer():
    """A tokenizer with a token for each byte."""
    specials = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(specials + alphabet)}, merges=[]))
    raw.add_special_tokens(specials)
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<|pad|>", eos_token="<|im_end|>")
    tokenizer.save_pretrained(checkpoint)
    return tokenizer


tokenizer = write_tokenizer()


def batch(responses, truths):
    """The batch that verl has after a rollout."""
    pad, prompt = tokenizer.pad_token_id, tokenizer("Add.")["input_ids"]
    tokens = [tokenizer(response)["input_ids"] for response in responses]
    longest = max(map(len, tokens))
    rows = [row + [pad] * (longest - len(row)) for row in tokens]
    mask = [[1] * (len(prompt) + len(row)) + [0] * (longest - len(row)) for row in tokens]
    column = lambda values: numpy.array(values, dtype=object)
    return DataProto.from_dict(
        tensors={"prompts": torch.tensor([prompt] * len(rows)), "responses": torch.tensor(rows),
                 "attention_mask": torch.tensor(mask)},
        non_tensors={"data_source": column(["openai/gsm8k"] * len(rows)),
                     "reward_model": column([{"style": "rule", "ground_truth": truth} for truth in truths]),
                     "extra_info": column([{"index": at} for at in range(len(rows))])},
    )


def start(path, **reward_kwargs):
    """verl's manager with two workers, whose function is `compute_score` of the file."""
    if not ray.is_initialized():
        ray.init(num_cpus=4 * WORKERS, num_gpus=0, include_dashboard=False, log_to_driver=False,
                 object_store_memory=300 << 20)
    reward = OmegaConf.load(Path(verl.__file__).parent / "trainer/config/reward/reward.yaml")
    model = {"path": str(checkpoint), "tokenizer_path": str(checkpoint)}
    config = OmegaConf.create({"actor_rollout_ref": {"model": model}, "reward": reward})
    config.reward.num_workers = WORKERS
    config.reward.custom_reward_function.path = str(path)
    config.reward.custom_reward_function.name = "compute_score"
    OmegaConf.set_struct(config, False)
    config.reward.custom_reward_function.reward_kwargs = reward_kwargs
    config.reward.reward_model.rollout.name = "vllm"
    return RewardLoopManager(config)


def gavel_function():
    """The file that `python -m gavel_rl.verl` names."""
    return subprocess.run([sys.executable, "-m", "gavel_rl.verl"], check=True, capture_output=True, text=True).stdout.strip()


def scores(answer):
    """The scores of a batch that the manager answered, one a sample."""
    return answer.batch["rm_scores"].sum(-1).tolist()
