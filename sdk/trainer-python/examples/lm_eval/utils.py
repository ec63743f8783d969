"""The metric of gavel_sums.yaml."""

from gavel_rl.lm_eval import ProcessResults

process_results = ProcessResults(["exact-answer"], limits={"cpu": "2s"})
