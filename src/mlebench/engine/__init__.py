"""How bytes are made: this package does what `mlebench.kit` promises to authors. Competitions never import it.

| module | what it does |
|---|---|
| `trees`, `archives` | find raw files by name, wherever they are; write archives |
| `reading`, `texts`, `arrays` | bytes, lines and arrays of raw files, in bounded memory |
| `frames`, `tables` | pandas' dialect, and the lazy tables in front of it |
| `csv`, `records`, `parquet` | where rows come from and how they are written, format by format |
| `row_order` | puts rows that arrive block by block into the order of a table |
| `placing` | what goes into which folder, and how it gets there |
"""
