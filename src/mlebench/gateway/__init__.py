"""The one way from a sandbox to a model: keys, counts, budgets, traces."""
