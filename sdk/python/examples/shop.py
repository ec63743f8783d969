"""A tool that is a shop: the policy finds items, puts them in its basket, pays for them and cancels orders. The state in
which a trajectory ends says what was bought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from gavel import InvalidInput, final_state, tool

_LARGEST = 2**64 - 1
"""A larger price is cut off there."""


@dataclass(frozen=True)
class Item:
    """An item of the stock."""

    price: int
    count: int

    def __post_init__(self) -> None:
        for value in (self.price, self.count):
            if type(value) is not int or not 0 <= value < 2**32:
                raise ValueError(f"prices and counts are whole numbers of 32 bits, not {value!r:.80}")


@tool
class Shop:
    def __init__(self, settings: dict[str, Any]) -> None:
        if settings.keys() != {"stock"}:
            raise InvalidInput(f"the row must set `stock`, and nothing else; it sets {sorted(settings)}")
        try:
            self._stock = {name: Item(**item) for name, item in sorted(settings["stock"].items())}
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidInput(f"`stock` must have items with `price` and `count`: {error}") from error
        self._basket: Counter[str] = Counter()
        self._orders: list[Counter[str] | None] = []
        """In the order in which they were paid for; None for those that were cancelled."""

    def search(self, words: str = "") -> str:
        """Lists items with their prices, and how many are left.

        Args:
            words: A part of the name; all items without it
        """
        found = [name for name in self._stock if words.lower() in name.lower()]
        lines = [f"{name}: {self._stock[name].price} each, {self._left(name)} left" for name in found]
        return "\n".join(lines) or "nothing was found"

    def add(self, item: str, count: Annotated[int, {"minimum": 1}]) -> str:
        """Puts items in the basket. Nothing is bought before it is paid for.

        Args:
            item: The name of the item
            count: How many of it
        """
        if item not in self._stock:
            raise InvalidInput(f"there is no item `{item}`")
        if count > self._left(item):
            raise InvalidInput(f"of `{item}`, {self._left(item)} are left")
        self._basket[item] += count
        return f"{self._basket[item]} {item} in the basket, {self._price(self._basket)} in all"

    def pay(self) -> str:
        """Pays for the basket, which becomes an order."""
        if not self._basket:
            raise InvalidInput("the basket is empty")
        order, self._basket = self._basket, Counter()
        self._orders.append(order)
        return f"order {len(self._orders)} is paid: {self._price(order)}"

    def cancel(self, order: Annotated[int, {"minimum": 1}]) -> str:
        """Cancels an order. Its items are in stock again.

        Args:
            order: The number of the order
        """
        items = self._orders[order - 1] if order <= len(self._orders) else None
        if items is None:
            raise InvalidInput(f"there is no order {order}")
        self._orders[order - 1] = None
        return f"order {order} is cancelled: {self._price(items)} back"

    @final_state
    def state(self) -> dict[str, Any]:
        """What a reward sees: the orders that stand, what they cost, the basket and what is left of the stock."""
        standing = [order for order in self._orders if order is not None]
        return {
            "orders": standing,
            "paid": min(sum(map(self._price, standing)), _LARGEST),
            "basket": self._basket,
            "stock": {name: item.count - self._sold(name) for name, item in self._stock.items()},
        }

    def _left(self, name: str) -> int:
        """How many of an item can still be put in the basket."""
        return self._stock[name].count - self._sold(name) - self._basket[name]

    def _sold(self, name: str) -> int:
        """How many of an item are in orders that stand."""
        return sum(order[name] for order in self._orders if order is not None)

    def _price(self, items: Mapping[str, int]) -> int:
        return min(sum(self._stock[name].price * count for name, count in items.items()), _LARGEST)
