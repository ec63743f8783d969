"""``gavel score --ray``: the command hands its job over to this module, as JSON."""

from __future__ import annotations

import json
import logging
import sys

_ERROR, _INTERRUPTED = 2, 130


def main(order: str) -> int:
    """Runs the job, and returns the exit status."""
    job = json.loads(order)
    try:
        # Its error says what to install.
        from gavel_rl.ray.job import Job
        from gavel_rl.ray.recipe import Recipe

        import ray
        from gavel_rl import GavelError
    except ImportError as error:
        return _failed(str(error))
    # Ray prints its progress, and workers' logs until the end; stdout is for the summary.
    sys.stdout, stdout = sys.stderr, sys.stdout
    try:
        ray.init(address=job["address"], logging_level=logging.WARNING)
        recipe = Recipe.of(job["scorer"]).with_workers(1)
        summary = Job(job["data"], job["out"], recipe, job["columns"]).run()
    except KeyboardInterrupt:
        return _failed("interrupted\nhint: the same command goes on where the job stopped", _INTERRUPTED)
    except (ConnectionError, GavelError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        return _failed(str(error))
    if job["json"]:
        print(json.dumps(summary.shown()), file=stdout)
    else:
        print("\n".join(summary.lines(job["out"])), file=sys.stderr)
    if summary.unreadable:
        print(f"error: {summary.why_unreadable}", file=sys.stderr)
        if summary.unreadable > 1:
            print(f"{summary.unreadable - 1} more rows cannot be read", file=sys.stderr)
    return 1 if summary.unreadable else 0


def _failed(what: str, status: int = _ERROR) -> int:
    print(f"error: {what}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
