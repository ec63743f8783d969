//! Tests a built component in the very sandbox that training uses.
