"""How a run ended, under one category. Read `rules` first; `categories` applies them, and `tables` shows the result."""
