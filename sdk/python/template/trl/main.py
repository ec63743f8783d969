"""Scores with `{{function}}` of {{module}}.py, called as TRL calls it."""

from gavel.trl import from_trl
from {{module}} import {{function}}

score = from_trl({{function}})
