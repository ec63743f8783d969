"""Lists every key of the reference configurations of verl and TRL, and checks that each has a hint here.

The keys are read from the wheels: verl's YAML files, with every choice that they offer at the top, and the fields of
TRL's dataclasses and of what they inherit from `transformers`. Nothing of the three packages is imported.

    pip download --no-deps -d wheels verl==0.9.1 trl==1.16.0 transformers==5.24.0
    python tests/parity/trainer_keys.py wheels                       # prints: trainer, key, its defaults
    python tests/parity/trainer_keys.py wheels --check host/config/src/foreign_keys.tsv

`--check` names the keys without a hint, the hints that no key has, and the hints that name no key of Gavel.

    pip install pyyaml==6.0.4
"""

import argparse
import ast
import re
import sys
import zipfile
from pathlib import Path

import yaml

DOCS = Path(__file__).parents[2] / "docs"
VERL = "verl/trainer/config"
ASYNC = "verl/experimental/fully_async_policy/config/fully_async_ppo_trainer.yaml"
TRL = {
    "trl/trainer/grpo_config.py": "GRPOConfig",
    "trl/trainer/rloo_config.py": "RLOOConfig",
    "trl/trainer/dpo_config.py": "DPOConfig",
    "trl/trainer/kto_config.py": "KTOConfig",
    "trl/trainer/sft_config.py": "SFTConfig",
    "trl/trainer/reward_config.py": "RewardConfig",
    "trl/trainer/model_config.py": "ModelConfig",
    "trl/scripts/utils.py": "ScriptArguments",
}
BASES = {"_BaseConfig": "trl/trainer/base_config.py", "TrainingArguments": "transformers/training_args.py"}
# Where the tables of Gavel's keys are, their heads, and the tables that a title does not name.
PAGES = ["configuration.md", "algorithms.md", "agents.md"]
HEAD = re.compile(r"\| (key(?: of `(.*)`)?|Gavel's name|`train.loss.policy`) \|")
TABLES = {
    "Top level": [""],
    "Columns": ["data.columns"],
    "The distance from a reference": ["train.loss.kl", "train.kl_reward"],
}
COPIES = {"train.optimizer": "train.critic.optimizer", "model.lora": "train.critic.lora", "limits": "exec.limits"}
# How a hint begins.
BEGINS = ("the name here is `", "the names here are `", "not needed: ", "not there: ")


class Files:
    """The files of the wheels in a folder."""

    def __init__(self, folder):
        self.at = {name: wheel for path in folder.glob("*.whl") for wheel in [zipfile.ZipFile(path)]
                   for name in wheel.namelist()}  # fmt: skip

    def read(self, name):
        return self.at[name].read(name).decode()


def leaves(value, path=()):
    """The dotted path and value of each key that has no keys of its own."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from leaves(below, (*path, str(key)))
    elif path:
        yield ".".join(path), value


def verl_file(files, name, package=()):
    """The keys of a YAML file of verl and of the files that it names; at the top, of all others of their groups too."""
    content = yaml.safe_load(files.read(name)) or {}
    defaults = content.pop("defaults", [])
    content.pop("hydra", None)
    yield from leaves(content, package)
    for entry in defaults:
        group, choice = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        if choice in ("_self_", "ppo_trainer"):
            continue
        group, _, at = group.removeprefix("../").partition("@")
        folder = f"{VERL}/{group}" if group else name.rpartition("/")[0]
        below = (*package, *at.split(".")) if at else package
        for file in sorted(files.at):
            is_other = group and not package and file.rpartition("/")[0] == folder and file.endswith(".yaml")
            if is_other or file == f"{folder}/{choice}.yaml":
                yield from verl_file(files, file, below)


def verl(files):
    for name in files.at:
        if (name.rpartition("/")[0] == VERL and name.endswith(".yaml") and "/_generated" not in name) or name == ASYNC:
            yield from verl_file(files, name)


def fields(files, name, of):
    """The fields of a dataclass in a file, with those that it inherits."""
    tree = ast.parse(files.read(name))
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == of)
    for base in found.bases:
        if base.id in BASES:
            yield from fields(files, BASES[base.id], base.id)
    for node in found.body:
        if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
            value = node.value
            if isinstance(value, ast.Call):
                value = next((word.value for word in value.keywords if word.arg.startswith("default")), None)
            yield node.target.id, ast.unparse(value) if value else ""


def keys(files):
    """The sorted triples of trainer, key and the defaults that the files have for it."""
    found = {("verl", key, text(value)) for key, value in verl(files) if not key.endswith("_target_")}
    for name, of in TRL.items():
        found |= {("TRL", key, text(value)) for key, value in fields(files, name, of)}
    defaults = {}
    for trainer, key, value in sorted(found):
        defaults.setdefault((trainer, key), []).append(value)
    return [(*key, " | ".join(values)) for key, values in defaults.items()]


def text(value):
    return re.sub(r"\s+", " ", str(value))


def gavel_keys():
    """Gavel's keys and tables, as the pages list them."""
    known = {"train.advantage.scale", "train.advantage.gamma", "train.advantage.lam", "train.advantage.threshold",
             "train.filter_groups.max_num_gen_batches", "reward_model.url"}  # fmt: skip
    for page in PAGES:
        tables, kind = [], None
        for line in (DOCS / page).read_text().splitlines():
            if line.startswith("#"):
                named = re.search(r"`\[\[?([a-z_.]+?)(\.NAME)?\]", line)
                tables = [named[1]] if named else TABLES.get(line.lstrip("# "), [])
            elif head := HEAD.match(line):
                kind = head[1]
                of_head = [head[2].strip("[]")] if head[2] else tables
            elif not line.startswith("|"):
                kind = None
            elif kind:
                cell = line.split("|")[3 if kind.startswith("`") else 1]
                for table in ["train.loss"] if kind.startswith("`") else of_head:
                    known |= {table, *(f"{table}.{key}".removeprefix(".") for key in re.findall(r"`([a-z_]+)`", cell))}
    for table, copy in COPIES.items():
        known |= {copy + key.removeprefix(table) for key in known if key.startswith(f"{table}.")}
    return known


def hints(path):
    """The lines of the file of hints: trainers, key, hint."""
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def rank(pattern, path, unknown):
    """How well a pattern fits a key, as `host/config/src/unknown_key.rs` ranks it."""
    names, is_group = pattern.removesuffix(".*").split("."), pattern.endswith(".*")
    for end in range(len(path), unknown, -1) if is_group else [len(path)]:
        of_path = path[max(end - len(names), 0) : end]
        if len(of_path) == len(names) and of_path[:-1] == names[:-1]:
            last, is_start = names[-1].removesuffix("*"), names[-1].endswith("*")
            if of_path[-1] == last or (is_start and of_path[-1].startswith(last)):
                return len(names), end, not is_group, not is_start
    return None


def best(lines, key, known):
    """The line whose pattern fits a key best. What follows the tables of Gavel in the key is what is unknown there."""
    path = key.split(".")
    unknown = next((at for at in range(len(path)) if ".".join(path[: at + 1]) not in known), len(path) - 1)
    ranked = [(found, line) for line in lines if (found := rank(line[1], path, unknown))]
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None


def check(listed, path):
    lines, known = list(hints(path)), gavel_keys()
    wrong, used = [], set()
    for trainer, key, value in listed:
        line = best(lines, key, known)
        if line is None:
            wrong.append(f"{trainer}\t{key}\t{value}: no hint")
            continue
        used.add((trainer, line[1]))
        if trainer not in line[0].split(","):
            wrong.append(f"{trainer}\t{key}: the hint of `{line[1]}` is of {line[0]}")
    for trainers, pattern, hint in lines:
        for trainer in {"verl", "TRL"} & set(trainers.split(",")):
            if (trainer, pattern) not in used:
                wrong.append(f"`{pattern}`: no key of {trainer} has this hint")
        if not hint.startswith(BEGINS):
            wrong.append(f"`{pattern}`: the hint begins with none of {BEGINS}")
        for name in re.findall(r"`([^`]*)`", hint):
            if re.sub(r"\.NAME$", "", name.split(" = ")[0].strip("[]")) not in known:
                wrong.append(f"`{pattern}`: `{name}` is no key of Gavel")
    if [line[1] for line in lines] != sorted({line[1] for line in lines}):
        wrong.append("the lines are not sorted by key, or have one twice")
    return wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("wheels", type=Path)
    arguments.add_argument("--check", type=Path, metavar="FILE")
    arguments = arguments.parse_args()
    listed = keys(Files(arguments.wheels))
    if not arguments.check:
        for line in listed:
            print(*line, sep="\t")
        return
    wrong = check(listed, arguments.check)
    print(*wrong, f"{len(listed)} keys, {len(wrong)} mistakes", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
