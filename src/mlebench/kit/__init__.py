"""What a competition's author works with. Competitions import from here and from `mlebench.metrics` only."""

from mlebench.errors import InvalidSubmissionError
from mlebench.kit.checks import (
    align,
    as_text,
    as_words,
    column_values,
    require_columns,
    require_only_columns,
    require_row_sums,
    require_rows,
    rows_of_ids,
    sorting_order,
)
from mlebench.kit.dicom import dicom_bytes
from mlebench.kit.files import Raw, RawFile, encode_json, md5_of, open_raw
from mlebench.kit.frames import read_frame, values_of
from mlebench.kit.outputs import Output
from mlebench.kit.rle import Runs, decode_runs, encode_runs, parse_runs
from mlebench.kit.samples import public_sample, public_sample_bytes
from mlebench.kit.splits import split_groups, split_rows
from mlebench.kit.tables import Table, is_in, join_text, one_hot, renumber, unique
from mlebench.kit.tokens import TokenSplit, split_tokens, write_token_twin
from mlebench.kit.twins import (
    TwinFolder,
    bson_bytes,
    csv_bytes,
    hex_ids,
    image_bytes,
    json_bytes,
    json_lines_bytes,
    mp4_bytes,
    npy_bytes,
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
    "TokenSplit",
    "TwinFolder",
    "align",
    "as_text",
    "as_words",
    "bson_bytes",
    "column_values",
    "csv_bytes",
    "decode_runs",
    "dicom_bytes",
    "encode_json",
    "encode_runs",
    "hex_ids",
    "image_bytes",
    "is_in",
    "join_text",
    "json_bytes",
    "json_lines_bytes",
    "md5_of",
    "mp4_bytes",
    "npy_bytes",
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
    "rows_of_ids",
    "sorting_order",
    "split_groups",
    "split_rows",
    "split_tokens",
    "unique",
    "values_of",
    "write_token_twin",
    "zip_bytes",
]
