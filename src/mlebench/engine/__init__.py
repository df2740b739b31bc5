"""How bytes are made: what `mlebench.kit` promises to authors is done here. Competitions never import it.

| module | what it does |
|---|---|
| `trees`, `archives` | raw files by name, wherever they lie; archives written |
| `reading`, `texts`, `arrays` | bytes, lines and arrays of raw files, in bounded memory |
| `frames`, `tables` | pandas' dialect, and the lazy tables that stand before it |
| `csv`, `records`, `parquet` | where rows come from and how they are written, format by format |
| `row_order` | rows that come block by block, put into the order of a table |
| `placing` | what goes into which folder, and how it gets there |
"""
