"""The contents of a folder are planned first; then everything is written and placed."""
