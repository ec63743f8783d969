"""Tests of the tool itself: `python3 -m pytest`, on this machine."""

import pytest
from gavel import InvalidInput
from main import Game, Params


def test_a_game_ends_when_no_guess_is_left() -> None:
    game = Game({"number": 42}, Params(guesses=2))
    assert [game.guess(50), game.guess(25), game.guesses_left()] == ["lower", "higher", 0]
    with pytest.raises(InvalidInput, match="no guess is left"):
        game.guess(42)


def test_a_row_sets_the_number() -> None:
    with pytest.raises(InvalidInput, match="`number`"):
        Game({}, Params())


def test_no_guesses_are_refused() -> None:
    with pytest.raises(ValueError, match="`guesses` must be"):
        Params(guesses=0)
