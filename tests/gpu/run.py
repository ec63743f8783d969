"""Checks and measures Gavel on a GPU, against `transformers`, PyTorch and the limits of the device.

    python tests/gpu/run.py path/to/gavel-models checks              # are the results right? A minute on an H200, 16 cores
    python tests/gpu/run.py path/to/gavel-models speeds              # how fast is it? Five minutes there, six with TRL
    python tests/gpu/run.py path/to/gavel-models speeds --only decode train --models 0.5B
    python tests/gpu/run.py path/to/gavel-models checks --small      # small models on the CPU, to test this script

It needs a Python with PyTorch for CUDA, transformers and peft, and builds nothing. The binary runs against the libtorch
of that PyTorch, which must have the version that the binary was built with:

    cargo build --profile gpu --bin gavel-models && strip target/gpu/gavel-models && xz -T0 target/gpu/gavel-models      # 20 MiB

Beside this folder, the checks need tests/parity and built plugins (`cargo xtask plugins`). What is missing is a row: the
data of `cargo xtask demo`, nvcc and compute-sanitizer. Programs that end with .xz are unpacked first.

Rows are printed as they are known, and in tables at the end. A command that fails, or takes longer than --limit, is a
row of its own, and the rest continues. Exits with 1 if a check or a command failed.
"""
import argparse
import pathlib
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from checks import Checks
from common import Gavel, Table, in_one_line, unpacked
from speeds import PARTS, Speeds
from transformers.utils import logging


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gavel", type=pathlib.Path, help="the binary")
    parser.add_argument("what", choices=["checks", "speeds"])
    parser.add_argument("--small", action="store_true", help="small models, on the CPU, in 32 bits")
    parser.add_argument("--only", nargs="+", metavar="NAME",
                        help=f"only these checks, by their names in the table, or only these of {', '.join(PARTS)}")
    parser.add_argument("--jobs", type=int, default=8, metavar="N", help="checks at a time; 8 by default")
    parser.add_argument("--policy-tests", type=pathlib.Path, metavar="PROGRAM",
                        help="the program of `cargo test --release --workspace --no-run --test policy`, to run on the GPU")
    parser.add_argument("--models", nargs="+", help="only these sizes are measured")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="how often decoding is measured; 1 by default")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS",
                        help="the time of a command, after which it has failed; 300 by default")
    args = parser.parse_args()
    if not args.small and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU; --small runs on the CPU")
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    # Models are written and read faster in memory.
    memory = pathlib.Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 40 << 30
    with tempfile.TemporaryDirectory(dir=memory if roomy else None) as folder:
        folder = pathlib.Path(folder)
        gavel = Gavel(unpacked(args.gavel, folder), "cpu" if args.small else "cuda:0", args.limit)
        print(gavel.run([gavel.path, "doctor"]), flush=True)
        table = check(gavel, args, folder) if args.what == "checks" else Speeds(gavel, args, folder).measure()
        for line in sorted(gavel.not_used):
            table.fail(["fast paths"], line)
        table.print()
    sys.exit(1 if table.failed else 0)


def check(gavel, args, folder):
    """All checks, some at a time."""
    table = Table("check", "how", "found")
    checks = Checks(gavel, folder, args.small, args.policy_tests and unpacked(args.policy_tests, folder))
    names = {what[0] for what, _ in [*checks.all(), *checks.alone()]}
    if unknown := set(args.only or []) - names:
        sys.exit(f"there is no check {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    for jobs, some in (args.jobs, checks.all()), (1, checks.alone()):
        with ThreadPoolExecutor(jobs) as pool:
            for what, run in some:
                if what[0] in (args.only or what):
                    pool.submit(report, table, what, run)
    return table


def report(table, what, run):
    """Runs a check and adds a row for it."""
    started = time.monotonic()
    try:
        passed, about = run()
    except Exception as error:
        passed, about = False, in_one_line(error)
    about = f"{about} ({time.monotonic() - started:.0f} s)"
    if passed:
        table.add(*what, f"passed: {about}")
    elif passed is None:
        table.add(*what, f"not run: {about}")
    else:
        table.fail(what, about)


if __name__ == "__main__":
    main()
