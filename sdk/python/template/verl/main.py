"""Scores with `{{function}}` of {{module}}.py, called as verl calls it."""

from gavel.verl import from_verl
from {{module}} import {{function}}

# Promises about the function, if it keeps them: from_verl({{function}}, pure=True, score_range=(0, 1)).
# `pure` lets the host reuse an instance, and a score outside of the range is a fault.
score = from_verl({{function}})
