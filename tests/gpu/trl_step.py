"""Steps of GRPO by TRL, one JSON line each: its seconds, and of these the seconds of generation.

    python trl_step.py CHECKPOINT ROWS.jsonl --prompts 64 --response-tokens 512 --dtype bfloat16 --device cuda:0

Groups of 8, rewards at random, no gradient checkpointing, fused AdamW in the dtype of the weights, responses by
`generate`. The first step also warms up.
"""
import argparse
import json
import os
import random
import sys
import tempfile
import time

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
# TRL takes all devices that it sees.
if (device := sys.argv[sys.argv.index("--device") + 1]).startswith("cuda"):
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", device.partition(":")[2] or "0")
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from transformers.trainer_callback import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

GROUP, PAD, EOS = 8, 0, 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("rows")
    parser.add_argument("--prompts", type=int)
    parser.add_argument("--response-tokens", type=int)
    parser.add_argument("--dtype")
    parser.add_argument("--device")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    on_gpu, batch = args.device != "cpu", args.prompts * GROUP
    micro_batch = min(32, batch)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{args.checkpoint}/tokenizer.json", pad_token=f"t{PAD}",
                                        eos_token=f"t{EOS}", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(args.checkpoint, dtype=getattr(torch, args.dtype))
    model.generation_config.eos_token_id = EOS
    with open(args.rows) as lines:
        prompts = [json.loads(line)["prompt"] for line in lines]
    prompts = (prompts * args.steps)[: args.prompts * args.steps]
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(on_gpu)
        trainer = Timed(
            model=model, reward_funcs=lambda completions, **_: [draw.random() for _ in completions],
            processing_class=tokenizer, callbacks=[clock], train_dataset=Dataset.from_dict({"prompt": prompts}),
            args=GRPOConfig(
                output_dir=folder, use_cpu=not on_gpu, bf16=args.dtype == "bfloat16", report_to=[], save_strategy="no",
                disable_tqdm=True, per_device_train_batch_size=micro_batch,
                gradient_accumulation_steps=batch // micro_batch, generation_batch_size=batch, num_generations=GROUP,
                max_completion_length=args.response_tokens,
                generation_kwargs={"min_new_tokens": args.response_tokens}, max_steps=args.steps, temperature=1.0,
                num_iterations=1, beta=0.0, learning_rate=1e-6, lr_scheduler_type="constant",
                gradient_checkpointing=False,
            ),
        )
        clock.trainer = trainer
        trainer.remove_callback(PrinterCallback)
        trainer.train()


class Timed(GRPOTrainer):
    generation_seconds = 0.0

    def _generate(self, *positional, **named):
        begin = time.perf_counter()
        # Its results are on the host.
        answer = super()._generate(*positional, **named)
        self.generation_seconds += time.perf_counter() - begin
        return answer


class Clock(TrainerCallback):
    """A step is from the last step's end, so that nothing that the trainer does is left out."""

    def __init__(self, on_gpu):
        self.on_gpu = on_gpu

    def on_train_begin(self, *_, **__):
        self.mark = self.now()

    def on_step_end(self, *_, **__):
        end, trainer = self.now(), self.trainer
        if trainer.generation_seconds == 0:
            sys.exit("this TRL generates responses elsewhere than in GRPOTrainer._generate")
        print(json.dumps(dict(seconds=end - self.mark, generation=trainer.generation_seconds)), flush=True)
        self.mark, trainer.generation_seconds = end, 0.0

    def now(self):
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()


if __name__ == "__main__":
    main()
