"""The reference of the SDK has everything public, as the sources have it."""

from __future__ import annotations

import importlib
import inspect
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import reference


def members(made: type) -> Iterator[str]:
    """The public names that a class defines itself."""
    for name, value in vars(made).items():
        if not name.startswith("_") and (callable(value) or hasattr(value, "__get__")):
            yield name
    fields: dict[str, Any] = getattr(made, "__dataclass_fields__", {})
    yield from (name for name in fields if not name.startswith("_"))


class Reference(unittest.TestCase):
    def test_the_page_is_what_the_sources_say(self) -> None:
        written = reference.PAGE.read_text(encoding="utf-8")
        self.assertEqual(written, reference.page(), "run `python3 sdk/python/tests/reference.py`")

    def test_each_public_class_and_method_is_named(self) -> None:
        text = reference.PAGE.read_text(encoding="utf-8")
        for module in ["gavel", *(f"gavel.{name}" for name in reference.MODULES)]:
            _, _, section = text.partition(f"## `{module}`\n")
            section, _, _ = section.partition("\n## ")
            loaded = importlib.import_module(module)
            for name in loaded.__all__:
                value = getattr(loaded, name)
                if inspect.ismodule(value):
                    continue
                title = f"### `{name}`\n" if inspect.isclass(value) else f"| `{name}"
                self.assertIn(title, section, f"{module}.{name}")
                _, _, of_class = section.partition(title)
                of_class, _, _ = of_class.partition("\n### ")
                for member in members(value) if inspect.isclass(value) else ():
                    rows = (f"| `{member}", f"| `{name}.{member}(")
                    self.assertTrue(any(row in of_class for row in rows), f"{module}.{name}.{member}")


if __name__ == "__main__":
    unittest.main()
