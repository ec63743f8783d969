"""Writes the fixtures on which Gavel's policy losses, KL estimators and advantages must agree with verl's
`core_algos`, in 64 bits: random and adversarial inputs, with verl's values and gradients. The same files come out
each time.

    pip install "torch==2.11.0" safetensors numpy "transformers==5.9.0" "ray==2.60.0" omegaconf codetiming aiohttp
    pip install --no-deps verl==0.9.1 tensordict==0.10.0 "pyvers<0.2" orjson cloudpickle importlib_metadata zipp
    python tests/parity/algorithms.py       # writes tests/parity/algorithms/{losses,advantages,values}.safetensors

`host/train/src/parity.rs` compares. `losses.safetensors` has, padded to [cases, rows, tokens]:

    mask, old, now, by_token, by_row     the inputs; the advantages are by_token or by_row
    NAME.value [cases]                   the loss
    NAME.gradient                        its gradient by `now`
    NAME.setting [cases]                 which of the settings of its metadata a case has
    NAME.advantages [1]                  1 if it has the advantages by_row, and 0 if by_token

`m2po`, which verl lacks, is written here from its paper; `icepop` is verl's REINFORCE with IcePop's weights.
`advantages.safetensors` has the samples of each case in rows, and for each estimator the advantages of the tokens; of
`gae` also the returns. `values.safetensors` has the loss of a critic, with its gradient by the values.
Where Gavel differs on purpose (docs/algorithms.md), the inputs are such that both agree, and a unit test pins the
difference: a group of one has no advantage by comparison; a row without a learned token does not count.
"""
import json
import math
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from omegaconf import OmegaConf
from safetensors.torch import save_file
from verl.trainer.ppo import core_algos as verl
from verl.trainer.ppo import rollout_corr_helper
from verl.workers.config import ActorConfig
from verl.workers.config.actor import PolicyLossConfig

CASES, ROWS, TOKENS = 200, 4, 6
FOLDER = Path(__file__).resolve().parent / "algorithms"
AGGREGATIONS = ["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]
NORM_TOKENS = 9


def single(values):
    """Numbers that 32 bits hold, in 64."""
    return values.to(torch.float32).to(torch.float64)


def loss_inputs():
    random = torch.Generator().manual_seed(1)
    uniform = lambda low, high, *shape: low + (high - low) * torch.rand(*shape, generator=random, dtype=torch.float64)
    cases = []
    for case in range(CASES):
        mask = (torch.rand(ROWS, TOKENS, generator=random) < 0.75).double()
        old = -uniform(0.01, 4.0, ROWS, TOKENS)
        spread = [0.02, 0.3, 1.0, 1.0][case % 4]
        now = torch.minimum(old + uniform(-spread, spread, ROWS, TOKENS), torch.tensor(-1e-3).double())
        by_token = uniform(-2.0, 2.0, ROWS, TOKENS)
        kind = case % 20
        if kind == 4:  # one token
            mask[:] = 0
            mask[1, 2] = 1
        elif kind == 5:  # rows of one token
            mask[:] = 0
            mask[torch.arange(ROWS), torch.randint(TOKENS, (ROWS,), generator=random)] = 1
        elif kind == 6:  # a masked row
            mask[2] = 0
        elif kind == 7:  # huge ratios of both signs
            now = old + uniform(-30.0, 30.0, ROWS, TOKENS)
        elif kind == 8:  # the policy did not move
            now = old.clone()
        elif kind == 9:  # all advantages equal
            by_token[:] = by_token[0, 0]
        elif kind == 10:  # no advantage
            by_token[:] = 0
        elif kind == 11:  # huge advantages
            by_token *= 1e4
        if mask.sum() == 0:
            mask[0, 0] = 1
        counts = mask.sum(-1, keepdim=True)
        by_row = (by_token * mask).sum(-1, keepdim=True) / counts.clamp(min=1) * torch.ones_like(mask)
        cases.append([single(values) for values in (mask, old, now, by_token, by_row)])
    return [torch.stack(values) for values in zip(*cases)]


def actor(aggregation, clip_low=0.2, clip_high=0.2, clip_ratio_c=1e9, policy=None, **more):
    return ActorConfig(
        strategy="fsdp", rollout_n=1, use_dynamic_bsz=True, clip_ratio_low=clip_low, clip_ratio_high=clip_high,
        clip_ratio_c=clip_ratio_c, loss_agg_mode=aggregation, policy_loss=PolicyLossConfig(**(policy or {})),
        global_batch_info={"loss_scale_factor": NORM_TOKENS}, **more,
    )


def with_verl(name, keys=(), policy=()):
    """A loss of verl's registry; `keys` are settings of the actor, `policy` those of its policy loss."""
    def loss(old, now, advantages, mask, aggregation, settings):
        chosen = {key: settings[key] for key in keys if key in settings}
        config = actor(aggregation, policy={key: settings[key] for key in policy}, **chosen)
        return verl.POLICY_LOSS_REGISTRY[name](old, now, advantages, mask, aggregation, config)[0]
    return loss


def without_empty_rows(loss):
    """Gavel leaves out rows without a learned token, which verl counts in the mean of `geo_mean`."""
    def of(old, now, advantages, mask, aggregation, settings):
        rows = mask.sum(-1) > 0
        return loss(old[rows], now[rows], advantages[rows], mask[rows], aggregation, settings)
    return of


def with_bounded_ratio(loss):
    """Gavel bounds the ratio by e^20 in every loss that has one; verl does so in all but `clip_cov` and `kl_cov`."""
    def of(old, now, advantages, mask, aggregation, settings):
        return loss(now - (now - old).clamp(-20, 20), now, advantages, mask, aggregation, settings)
    return of


def icepop(old, now, advantages, mask, aggregation, settings):
    bounds = f"{settings['mask_low']}_{settings['mask_high']}"
    # The metrics divide by zero where every weight is 0.
    with mock.patch.object(rollout_corr_helper, "compute_is_metrics", lambda **_: {}):
        weights, _ = rollout_corr_helper.compute_rollout_correction_weights(
            log_ratio=(now - old).detach(), response_mask=mask, rollout_is="token", rollout_is_threshold=bounds)
    return verl.compute_policy_loss_reinforce(
        old, now, advantages, mask, aggregation, actor(aggregation), rollout_is_weights=weights)[0]


def m2po(old, now, advantages, mask, aggregation, settings):
    """The tokens that move the policy further away are masked, those with the largest squared log-ratio first, until
    the mean of the squares over the rest of them is within the budget: Zheng et al., 2025, algorithm 1."""
    squares = ((now - old) ** 2).detach()
    away = (mask > 0) & ((now - old).detach() * advantages > 0)
    kept = mask.clone()
    while (away & (kept > 0)).any() and squares[away & (kept > 0)].mean() > settings["m2_budget"]:
        left = torch.where(away & (kept > 0), squares, torch.full_like(squares, -1.0))
        kept.view(-1)[left.argmax()] = 0
    ratio = torch.exp((now - old).clamp(-20, 20))
    return verl.agg_loss(-ratio * advantages * kept, mask, aggregation, loss_scale_factor=NORM_TOKENS)


def any_of(**choices):
    """All combinations of values, as a list of dictionaries."""
    found = [{}]
    for key, values in choices.items():
        found = [{**settings, key: value} for settings in found for value in values]
    return found


CLIP = ("clip_low", "clip_high")
BOTH = any_of(clip_low=[0.1, 0.3], clip_high=[0.2, 0.4])
SEQUENCE = ["seq-mean-token-mean"]
# name: (loss, settings, aggregations, whether its advantages are by row)
LOSSES = {
    "vanilla": (with_verl("vanilla", CLIP + ("clip_ratio_c",)), BOTH + any_of(clip_ratio_c=[1.2, 3.0]), AGGREGATIONS, 0),
    "gspo": (with_verl("gspo", CLIP), BOTH + any_of(clip_low=[3e-4], clip_high=[4e-4]), AGGREGATIONS, 1),
    "gspo_token": (with_verl("gspo", CLIP), BOTH + any_of(clip_low=[3e-4], clip_high=[4e-4]), AGGREGATIONS, 0),
    "icepop": (icepop, any_of(mask_low=[0.5, 0.8], mask_high=[2.0, 5.0]), AGGREGATIONS, 0),
    "m2po": (m2po, any_of(m2_budget=[0.04, 0.2]), AGGREGATIONS, 0),
    "sapo": (lambda old, now, advantages, mask, aggregation, settings: verl.compute_policy_loss_sapo(
        old, now, advantages, mask, aggregation, actor(aggregation, **settings))[0],
        any_of(tau_pos=[1.0, 2.0], tau_neg=[1.05, 3.0]), SEQUENCE, 0),
    "gpg": (with_verl("gpg"), [{}], AGGREGATIONS, 0),
    "clip_cov": (with_bounded_ratio(with_verl("clip_cov", CLIP, ("clip_cov_ratio", "clip_cov_lb", "clip_cov_ub"))),
                 any_of(clip_low=[0.2], clip_high=[0.3], clip_cov_ratio=[1.0], clip_cov_lb=[0.1, 0.5],
                        clip_cov_ub=[1.0, 5.0]), AGGREGATIONS, 0),
    "kl_cov": (with_bounded_ratio(with_verl("kl_cov", (), ("kl_cov_ratio", "ppo_kl_coef"))),
               any_of(kl_cov_ratio=[0.1, 0.4], ppo_kl_coef=[0.1, 1.0]) + [{"kl_cov_ratio": 1.0, "ppo_kl_coef": 1.0}],
               AGGREGATIONS, 0),
    "geo_mean": (without_empty_rows(with_verl("geo_mean", CLIP)), BOTH, SEQUENCE, 0),
    "cispo": (with_verl("cispo", CLIP), BOTH + any_of(clip_low=[1.0], clip_high=[0.2]), AGGREGATIONS, 0),
    "dppo_tv": (with_verl("dppo_tv", CLIP + ("clip_ratio_c",)), any_of(clip_low=[0.05, 0.2], clip_high=[0.2], clip_ratio_c=[1.5, 20.0]), AGGREGATIONS, 0),
    "dppo_kl": (with_verl("dppo_kl", CLIP + ("clip_ratio_c",)), any_of(clip_low=[0.05, 0.2], clip_high=[0.01], clip_ratio_c=[1.5, 20.0]), AGGREGATIONS, 0),
    "dro": (with_verl("dro", (), ("dro_beta",)), any_of(dro_beta=[0.1, 2.0]), AGGREGATIONS, 0),
}
for kind in ["k1", "k2", "k3", "abs", "k1+", "k3+", "abs+"]:
    LOSSES[f"kl.{kind}"] = (lambda old, now, advantages, mask, aggregation, settings, kind=kind: verl.agg_loss(
        verl.kl_penalty(now, old, kind), mask, aggregation, loss_scale_factor=NORM_TOKENS), [{}], ["token-mean"], 0)


def is_tied(old, now, advantages, mask, ratio):
    """Whether equal covariances leave open which tokens are the largest."""
    valid = mask > 0
    a, l = advantages[valid], now[valid]
    found = ((a - a.mean()) * (l - l.mean())).sort(descending=True).values
    count = max(1, int(len(found) * ratio))
    return count < len(found) and abs(found[count - 1] - found[count]) < 1e-9 * (1 + abs(found[count]))


def losses():
    mask, old, now, by_token, by_row = loss_inputs()
    tensors = {"mask": mask.to(torch.uint8), "old": old.float(), "now": now.float(), "by_token": by_token.float(),
               "by_row": by_row.float()}
    written = {}
    for name, (loss, settings, aggregations, is_by_row) in LOSSES.items():
        # 41 is prime, so that every kind of input meets every setting.
        every = [{**chosen, "aggregation": aggregation} for chosen in settings for aggregation in aggregations]
        values, gradients, numbers = [], [], []
        for case in range(CASES):
            advantages = (by_row if is_by_row else by_token)[case]
            number = (41 * case + case // 20) % len(every)
            if name == "kl_cov" and is_tied(old[case], now[case], advantages, mask[case], every[number]["kl_cov_ratio"]):
                number = len(every) - len(aggregations) + number % len(aggregations)
            chosen = dict(every[number])
            aggregation = chosen.pop("aggregation")
            point = now[case].clone().requires_grad_()
            value = loss(old[case], point, advantages, mask[case], aggregation, chosen)
            value.backward()
            assert math.isfinite(value.item()) and torch.isfinite(point.grad).all(), (name, case)
            values.append(value.detach())
            gradients.append(point.grad * mask[case])
            numbers.append(number)
        tensors[f"{name}.value"] = torch.stack(values)
        tensors[f"{name}.gradient"] = torch.stack(gradients).float()
        tensors[f"{name}.setting"] = torch.tensor(numbers, dtype=torch.uint8)
        tensors[f"{name}.advantages"] = torch.tensor([is_by_row], dtype=torch.uint8)
        written[name] = json.dumps(every)
    return tensors, written


def advantage_inputs():
    """Batches of rows: the group of each row, its loss mask, its reward, what is subtracted at each token, and more."""
    random = torch.Generator().manual_seed(2)
    pick = lambda high, *shape: torch.randint(high, shape, generator=random)
    cases = []
    for case in range(CASES):
        sizes = [1 + int(pick(5)) for _ in range(4)]
        if case % 5 == 0:
            sizes[0] = 1
        group = torch.cat([torch.full((size,), number) for number, size in enumerate(sizes)])[:10]
        rows = len(group)
        group = torch.nn.functional.pad(group, (0, 10 - rows), value=255)
        mask = (torch.rand(10, TOKENS, generator=random) < 0.7).double()
        mask[:, 0] = 1
        mask[rows:] = 0
        reward = (pick(33, 10) - 16).double() / 8
        kind = case % 20
        if kind == 3:
            reward[:] = reward[0]
        elif kind == 4:
            reward = (pick(2, 10)).double()
        elif kind == 5:
            reward *= 2.0 ** 17
        elif kind == 6:
            reward[:] = 0
        elif kind == 7:  # one token a row
            mask[:, 1:] = 0
        elif kind == 8:  # no holes
            mask = (torch.arange(TOKENS) < 1 + pick(TOKENS, 10)[:, None]).double()
            mask[rows:] = 0
        penalty = torch.zeros(10, TOKENS, dtype=torch.float64)
        if case % 3 == 0:
            penalty = (pick(17, 10, TOKENS) - 8).double() / 64
        norms = torch.rand(10, TOKENS, generator=random, dtype=torch.float64) * 2
        parts = torch.stack([(pick(9, 10) - 4).double() / 4, (pick(2, 10)).double() * 64, (pick(3, 10)).double()], -1)
        greedy = (pick(9, 10) - 4).double() / 4
        cases.append([group, single(mask), reward, penalty, single(norms), parts, greedy[:5]])
    random = torch.Generator().manual_seed(3)
    for case, inputs in enumerate(cases):
        values = single(torch.randn(10, TOKENS, generator=random, dtype=torch.float64) * [1, 100, 0][case % 3])
        inputs.append(values)
    return [torch.stack(values) for values in zip(*cases)]


WEIGHTS = [1.0, 0.25, 0.0625]
GAMMAS = [1.0, 0.5]
LAMS = [1.0, 0.95, 0.0]


def estimate(name, case, group, mask, reward, penalty, norms, parts, greedy, values):
    """verl's advantages of a batch; `gae.returns` are its returns."""
    rows = int((group < 255).sum())
    index, mask = group[:rows].numpy(), mask[:rows]
    sizes = {number: int((index == number).sum()) for number in index}
    is_alone = torch.tensor([sizes[number] == 1 for number in index])
    # verl's baseline for a group of one is 0. Gavel's is its own reward, unless it needs no group.
    compares = name not in ("reinforce_plus_plus", "remax", "gae", "gae.returns", "optimal_token_baseline", "tir_optimal_token_baseline")
    reward, penalty, parts = reward[:rows].clone(), penalty[:rows].clone(), parts[:rows].clone()
    normalises = name in ("reinforce_plus_plus_baseline", "gdpo")
    if normalises:
        reward[is_alone], penalty[is_alone], parts[is_alone] = 0, 0, 0
    rewards = -penalty * mask
    last = (mask * torch.arange(1, TOKENS + 1)).argmax(-1)
    rewards[torch.arange(rows), last] += reward
    function = verl.ADV_ESTIMATOR_REGISTRY[{"dr_grpo": "grpo", "gae.returns": "gae"}.get(name, name)]
    config = OmegaConf.create({"norm_adv_by_std_in_grpo": True, "gamma": GAMMAS[case % 2]})
    if name in ("grpo", "dr_grpo"):
        found = function(rewards, mask, index, norm_adv_by_std_in_grpo=name == "grpo")[0]
    elif name == "grpo_passk":
        found = torch.zeros_like(mask)
        if (~is_alone).any():
            found[~is_alone] = function(rewards[~is_alone], mask[~is_alone], index[~is_alone], config=config)[0]
    elif name == "gdpo":
        # In 64 bits, where verl has the scores in 32.
        config = OmegaConf.create({"gdpo_reward_keys": ["a", "b", "c"], "gdpo_reward_weights": WEIGHTS})
        batch = {"prompts": torch.zeros(rows, 1), "attention_mask": torch.ones(rows, 1 + TOKENS, dtype=torch.long)}
        scores = {key: parts[:, at].numpy() for at, key in enumerate("abc")}
        with mock.patch.object(torch, "float32", torch.float64), mock.patch.object(np, "float32", np.float64):
            found = function(rewards, mask, index, config=config, non_tensor_batch=scores, batch=batch)[0]
    elif name.startswith("gae"):
        both = function(rewards, values[:rows], mask, GAMMAS[case % 2], LAMS[case % 3])
        found = both[name == "gae.returns"]
    elif name == "remax":
        found = function(rewards, torch.tensor([greedy[number] for number in index]), mask)[0]
    elif name.endswith("optimal_token_baseline"):
        # 1 − 2π + Σπ² with π = ½.
        half = torch.full_like(mask, math.log(0.5))
        found = function(rewards, mask, index, half, norms[:rows])[0]
    else:
        found = function(rewards, mask, index=index, config=config)[0]
    if compares and not normalises:
        found[is_alone] = 0
    return torch.nn.functional.pad(found * mask, (0, 0, 0, 10 - rows))


ESTIMATORS = ["grpo", "dr_grpo", "grpo_passk", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "rloo", "opo", "gpg",
              "gdpo", "remax", "gae", "gae.returns", "optimal_token_baseline", "tir_optimal_token_baseline"]


def advantages():
    inputs = advantage_inputs()
    names = ["group", "mask", "reward", "penalty", "norms", "parts", "greedy", "values"]
    tensors = {name: values.to(torch.uint8) if name in ("group", "mask") else values.float()
               for name, values in zip(names, inputs)}
    for name in ESTIMATORS:
        found = [estimate(name, case, *(values[case] for values in inputs)) for case in range(CASES)]
        assert all(torch.isfinite(one).all() for one in found), name
        tensors[name] = torch.stack(found).float()
    return tensors


CLIPS = [0.5, 0.1, 10.0]


def value_losses():
    random = torch.Generator().manual_seed(4)
    normal = lambda: single(torch.randn(ROWS, TOKENS, generator=random, dtype=torch.float64))
    cases = []
    for case in range(CASES):
        mask = (torch.rand(ROWS, TOKENS, generator=random) < 0.75).double()
        mask[case % ROWS, 0] = 1
        old, returns = normal(), normal() * [1, 1000][case % 2]
        now = old.clone() if case % 5 == 0 else single(old + normal() * [0.05, 0.5, 5][case % 3])
        if case % 7 == 0:
            returns = old.clone()
        variable = now.clone().requires_grad_()
        loss, fraction = verl.compute_value_loss(variable, returns, old, mask, CLIPS[case % 3], "token-mean")
        loss.backward()
        cases.append([mask, old, returns, now, loss.detach(), variable.grad, fraction])
    names = ["mask", "old", "returns", "now", "value", "gradient", "clip_fraction"]
    return {name: torch.stack(values) for name, values in zip(names, zip(*cases))}


def main():
    FOLDER.mkdir(exist_ok=True)
    tensors, settings = losses()
    save_file(tensors, FOLDER / "losses.safetensors", metadata=settings)
    save_file(advantages(), FOLDER / "advantages.safetensors",
              metadata={"weights": json.dumps(WEIGHTS), "gammas": json.dumps(GAMMAS), "lams": json.dumps(LAMS)})
    save_file(value_losses(), FOLDER / "values.safetensors", metadata={"clips": json.dumps(CLIPS)})


if __name__ == "__main__":
    main()
