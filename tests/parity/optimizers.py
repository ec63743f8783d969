"""Writes the fixture on which `train.optimizer.kind` must agree with its peers: steps of `AdamW8bit` of torchao and of
`torch.optim.Muon`, on given gradients. The same file comes out each time.

    pip install "torch==2.11.0" "torchao==0.18.0" safetensors numpy
    TORCHDYNAMO_DISABLE=1 python tests/parity/optimizers.py     # writes tests/parity/optimizers.safetensors

`host/train/src/parity/optimizers.rs` compares. Weights and gradients are functions of their place in a tensor, which the
test computes again, so that the file has only what the peers computed. No number that `AdamW8bit` rounds to a code is so
close to the middle of two codes that a machine which rounds 32 bits otherwise would take the other.
"""
import os
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torchao.optim import AdamW8bit, subclass_8bit

HERE = Path(__file__).resolve().parent
STEPS, LR, BETAS, EPS, WEIGHT_DECAY = 4, 1e-2, (0.9, 0.99), 1e-8, 0.1
# The least distance from the middle of two codes, as a share of the distance between these.
MARGIN = 3e-5
# One with running means of 8 bits, and one that is too small for them.
ADAMW_SIZES = [(16, 256), (3, 256)]
# Wide, square and tall.
MUON_SIZES = [(6, 10), (8, 8), (12, 5)]
MUON = [
    {"momentum": 0.95, "nesterov": True, "ns_steps": 5, "adjust_lr_fn": "match_rms_adamw"},
    {"momentum": 0.9, "nesterov": False, "ns_steps": 3, "adjust_lr_fn": "original"},
]


def numbers(size, seed):
    """Numbers between -1 and 1 of many magnitudes, exact in 32 bits: cubes of odd numbers of 9 bits."""
    at = np.arange(np.prod(size), dtype=np.uint32)
    hashed = (at + np.uint32(seed * 7919)) * np.uint32(2654435761)
    odd = 2 * (hashed >> np.uint32(24)).astype(np.int64) - 255
    return torch.from_numpy((odd**3 / 2.0**24).astype(np.float32).reshape(size))


def steps(parameters, optimizer):
    for step in range(STEPS):
        for at, parameter in enumerate(parameters):
            parameter.grad = numbers(parameter.shape, 100 * at + step + 1)
        optimizer.step()


def check_roundings(numbers, codes):
    """Notes how close numbers are to the middle of two codes, and rounds them."""
    found = round_to_codes(numbers, codes)
    middles = (codes[1:] + codes[:-1]) / 2
    after = torch.searchsorted(middles, numbers).clamp(1, 254)
    for near in [after - 1, after]:
        distance = (numbers - middles[near]).abs() / (codes[near + 1] - codes[near])
        margins.append(distance.min().item())
    return found


margins = []
round_to_codes = subclass_8bit.quantize_8bit_with_qmap
subclass_8bit.quantize_8bit_with_qmap = check_roundings


def main():
    assert os.environ.get("TORCHDYNAMO_DISABLE") == "1", "compiled steps would round otherwise on each machine"
    torch.set_num_threads(1)
    found = {}
    parameters = [torch.nn.Parameter(numbers(size, 100 * at)) for at, size in enumerate(ADAMW_SIZES)]
    optimizer = AdamW8bit(parameters, lr=LR, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY)
    steps(parameters, optimizer)
    for at, parameter in enumerate(parameters):
        found[f"adamw_8bit.{at}"] = parameter.detach()
    for name in ["exp_avg", "exp_avg_sq"]:
        found[f"{name}.codes"] = optimizer.state[parameters[0]][name].codes
        found[f"{name}.scale"] = optimizer.state[parameters[0]][name].scale
    assert min(margins) > MARGIN, f"a rounding is not clear: {min(margins)}"
    for which, settings in enumerate(MUON):
        parameters = [torch.nn.Parameter(numbers(size, 100 * at)) for at, size in enumerate(MUON_SIZES)]
        steps(parameters, torch.optim.Muon(parameters, lr=LR, weight_decay=WEIGHT_DECAY, **settings))
        for at, parameter in enumerate(parameters):
            found[f"muon.{which}.{at}"] = parameter.detach()
    path = HERE / "optimizers.safetensors"
    save_file(found, path, {"format": "pt"})
    path.chmod(0o644)


if __name__ == "__main__":
    main()
