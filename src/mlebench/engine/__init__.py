"""How bytes are made: what `mlebench.kit` promises authors is implemented here. Competitions never import it.

| module | what it does |
|---|---|
| `trees`, `archives` | raw files by name, wherever they are; archives written |
| `reading`, `texts`, `arrays` | bytes, lines and arrays of raw files, in bounded memory |
| `frames`, `tables` | pandas' dialect, and the lazy tables in front of it |
| `csv`, `records`, `parquet` | where rows come from and how they are written, format by format |
| `row_order` | rows that arrive block by block, put into the order of a table |
| `output` | what goes into which folder, and how it gets there |
"""
