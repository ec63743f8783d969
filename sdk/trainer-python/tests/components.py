"""The components that the tests load; ``cargo xtask plugins`` builds them."""

from pathlib import Path

_TARGET = Path(__file__).parents[3] / "target"


def plugin(name: str) -> Path:
    """A standard plugin."""
    return _TARGET / "plugins" / f"{name}.wasm"


def guest(name: str) -> Path:
    """A component of the host's tests."""
    return _TARGET / "guests" / f"{name}.wasm"


def hostile(name: str) -> Path:
    """An attack."""
    return _TARGET / "hostile" / f"{name}.wasm"


def sums(count: int) -> list[dict[str, str]]:
    """Rows for exact-answer and loops: every third answer is wrong."""
    answer = [4 + (number % 3 == 2) - 4 * (number % 3 == 2) for number in range(count)]
    return [{"prompt": "2 + 2?", "response": f"Answer: {found}", "answer": "4"} for found in answer]
