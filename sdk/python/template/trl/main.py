"""Scores with `{{function}}` of {{module}}.py, called as TRL calls it."""

from gavel.trl import from_trl
from {{module}} import {{function}}

# Promises about the function, if it keeps them: from_trl({{function}}, pure=True, score_range=(0, 1)).
# `pure` lets the host reuse an instance, and a score outside of the range is a fault.
score = from_trl({{function}})
