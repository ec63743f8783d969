"""Scores with `{{function}}` of {{module}}.py, called as verl calls it."""

from gavel.verl import from_verl
from {{module}} import {{function}}

score = from_verl({{function}})
