"""A reward function in Python as a component."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from gavel_rl import _native
from gavel_rl.reward import explain_function


def build(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    requirements: str | os.PathLike[str] | None = None,
) -> Path:
    """Builds a component of a reward function, and returns its path for :class:`Reward`::

        scorer = Scorer([Reward(build("my_reward.py"))])

    The function takes the arguments that verl (``data_source``, ``solution_str``, ``ground_truth``, ``extra_info``) or
    TRL (``completions`` and columns) passes by name. It, and the files beside it that it imports, stay as they are.
    Arguments that neither passes are the ``params`` of the reward.

    The build needs componentize-py, in this interpreter's environment or on the path. It takes 10 s or more, and then
    the component takes as long to load for the first time. Ctrl-C interrupts it.

    Args:
        source: The file, ``my_reward.py``, or one function of it, ``my_reward.py:score``. Without a name, it is
            ``compute_score`` or the only function of the file.
        output: The component. By default it lies beside the file and has its name, or the name of the function if
            you gave one: ``my_reward.wasm`` or ``score.wasm``.
        requirements: The file with the packages that the function imports, which must be pure Python; by default the
            ``requirements.txt`` beside its file, if there is one.

    Raises:
        GavelError: The function is not one of a reward, cannot be built, or a tool for that is not installed.
    """
    if callable(source):
        raise TypeError(explain_function(source))
    path = os.fspath(source)
    file, colon, name = path.rpartition(":")
    # A colon may also be in the name of a folder.
    if not colon or not name.isidentifier():
        file, name = path, ""
    component = Path(file).with_name(f"{name or Path(file).stem}.wasm") if output is None else Path(output)
    needs = None if requirements is None else os.fspath(requirements)
    said = _native.build(file, name or None, needs, component, sys.prefix)
    if said:
        warnings.warn(said, stacklevel=2)
    return component
