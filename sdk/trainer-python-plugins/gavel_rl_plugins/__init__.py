"""Gavel's large standard rewards: the components beside this file, which ``gavel_rl`` finds by their names."""
