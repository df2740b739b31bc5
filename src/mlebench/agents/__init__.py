"""Built-in agents, one folder each."""
