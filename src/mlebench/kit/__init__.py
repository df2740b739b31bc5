"""What a competition's author works with. Competitions import from here and from `mlebench.metrics` only."""

from mlebench.errors import InvalidSubmissionError
from mlebench.kit.checks import (
    align,
    as_text,
    column_values,
    require_columns,
    require_only_columns,
    require_row_sums,
    require_rows,
    sorting_order,
)
from mlebench.kit.files import Raw, RawFile, encode_json, md5_of, open_raw
from mlebench.kit.frames import read_frame, values_of
from mlebench.kit.outputs import Output
from mlebench.kit.rle import Runs, decode_runs, encode_runs, parse_runs
from mlebench.kit.samples import public_sample, public_sample_bytes
from mlebench.kit.splits import split_groups, split_rows
from mlebench.kit.tables import Table, is_in, join_text, one_hot, renumber, unique
from mlebench.kit.twins import (
    TwinFolder,
    bson_bytes,
    csv_bytes,
    image_bytes,
    json_bytes,
    json_lines_bytes,
    parquet_bytes,
    rounded,
    zip_bytes,
)

__all__ = [
    "InvalidSubmissionError",
    "Output",
    "Raw",
    "RawFile",
    "Runs",
    "Table",
    "TwinFolder",
    "align",
    "as_text",
    "bson_bytes",
    "column_values",
    "csv_bytes",
    "decode_runs",
    "encode_json",
    "encode_runs",
    "image_bytes",
    "is_in",
    "join_text",
    "json_bytes",
    "json_lines_bytes",
    "md5_of",
    "one_hot",
    "open_raw",
    "parquet_bytes",
    "parse_runs",
    "public_sample",
    "public_sample_bytes",
    "read_frame",
    "renumber",
    "require_columns",
    "require_only_columns",
    "require_row_sums",
    "require_rows",
    "rounded",
    "sorting_order",
    "split_groups",
    "split_rows",
    "unique",
    "values_of",
    "zip_bytes",
]
