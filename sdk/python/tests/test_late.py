import importlib
import sys
import tempfile
import unittest
from pathlib import Path

from gavel.late import import_late, packages


class LateImports(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        files = {
            "__init__.py": "def f():\n    from . import hidden\n    return hidden.VALUE\n",
            "hidden.py": "VALUE = 1\ndef g():\n    import lazy_package.deep.deeper\n    from .broken import x\n",
            "deep/__init__.py": "",
            "deep/deeper.py": "",
            "broken.py": "raise RuntimeError('this module cannot be imported')\n",
            "unused.py": "",
        }
        for name, text in files.items():
            path = Path(folder.name, "lazy_package", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in list(sys.modules) if name.startswith("lazy_package")])

    def test_what_a_package_imports_when_it_is_called_is_there_before(self) -> None:
        importlib.import_module("lazy_package")
        self.assertIn("lazy_package", packages())
        self.assertNotIn("json", packages())
        import_late(["lazy_package"])
        for name in ["hidden", "deep.deeper"]:
            self.assertIn(f"lazy_package.{name}", sys.modules)
        for name in ["broken", "unused"]:
            self.assertNotIn(f"lazy_package.{name}", sys.modules)


if __name__ == "__main__":
    unittest.main()
