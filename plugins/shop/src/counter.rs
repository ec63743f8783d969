//! The stock, the basket and the orders of one trajectory.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many there are of each item.
type Counts = BTreeMap<String, u64>;

/// An item of the stock.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The price of one.
    price: u32,
    /// How many are left.
    count: u32,
}

/// The counter at which one trajectory buys.
#[derive(Debug)]
pub struct Counter {
    stock: BTreeMap<String, Item>,
    basket: Counts,
    /// In the order in which they were paid for; `None` for those that were cancelled.
    orders: Vec<Option<Counts>>,
}

impl Counter {
    pub fn new(stock: BTreeMap<String, Item>) -> Self {
        Self { stock, basket: Counts::new(), orders: Vec::new() }
    }

    /// The items whose names contain `words`, a line each.
    pub fn search(&self, words: &str) -> String {
        let words = words.to_lowercase();
        let found = self.stock.iter().filter(|(name, _)| name.to_lowercase().contains(&words));
        let lines: Vec<String> =
            found.map(|(name, item)| format!("{name}: {} each, {} left", item.price, self.left(name, item))).collect();
        if lines.is_empty() { "nothing was found".to_owned() } else { lines.join("\n") }
    }

    /// Puts items in the basket. They stay in stock until they are paid for.
    pub fn add(&mut self, name: &str, count: u64) -> Result<String, String> {
        let item = self.stock.get(name).ok_or_else(|| format!("there is no item `{name}`"))?;
        let left = self.left(name, item);
        if count > left {
            return Err(format!("of `{name}`, {left} are left"));
        }
        let in_basket = self.basket.entry(name.to_owned()).or_default();
        *in_basket += count;
        let in_basket = *in_basket;
        Ok(format!("{in_basket} {name} in the basket, {} in all", self.price(&self.basket)))
    }

    /// Makes an order of the basket.
    pub fn pay(&mut self) -> Result<String, String> {
        if self.basket.is_empty() {
            return Err("the basket is empty".to_owned());
        }
        let order = std::mem::take(&mut self.basket);
        let price = self.price(&order);
        self.orders.push(Some(order));
        Ok(format!("order {} is paid: {price}", self.orders.len()))
    }

    /// Cancels the order `number`, from 1.
    pub fn cancel(&mut self, number: u64) -> Result<String, String> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let order = at.and_then(|at| self.orders.get_mut(at)).and_then(Option::take);
        match order {
            Some(order) => Ok(format!("order {number} is cancelled: {} back", self.price(&order))),
            None => Err(format!("there is no order {number}")),
        }
    }

    /// What a reward sees: the orders that stand, what they cost, the basket and what is left of the stock.
    pub fn state(&self) -> Value {
        let standing: Vec<&Counts> = self.orders.iter().flatten().collect();
        let paid = standing.iter().map(|order| self.price(order)).fold(0, u64::saturating_add);
        let stock: Counts =
            self.stock.iter().map(|(name, item)| (name.clone(), u64::from(item.count) - self.sold(name))).collect();
        json!({"orders": standing, "paid": paid, "basket": self.basket, "stock": stock})
    }

    /// How many of an item can still be put in the basket.
    fn left(&self, name: &str, item: &Item) -> u64 {
        u64::from(item.count) - self.sold(name) - self.basket.get(name).copied().unwrap_or_default()
    }

    /// How many of an item are in orders that stand.
    fn sold(&self, name: &str) -> u64 {
        self.orders.iter().flatten().filter_map(|order| order.get(name)).sum()
    }

    /// Their price. One that has more than 64 bits is cut off there.
    fn price(&self, items: &Counts) -> u64 {
        let price = |name: &String| self.stock.get(name).map_or(0, |item| u64::from(item.price));
        items.iter().map(|(name, count)| price(name).saturating_mul(*count)).fold(0, u64::saturating_add)
    }
}
