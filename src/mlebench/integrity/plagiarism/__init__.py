"""What runs' code shares with published notebooks and with other runs, how much, and how unusual that is.

`programs` extracts code from files, `tokens` and `fingerprints` turn it into winnowed hashes, `reading` does so for
many files in limited processes. `corpus` learns from notebooks what unrelated code shares; `matching` finds the
passages; `compare` puts it together, and `report` writes it down.
"""
