"""What a competition's `prepare` and `grade` work with; `mlebench.kit.twins` is for its twin.

Competitions import only from these two and from `mlebench.metrics`.
"""

from mlebench.core.errors import InvalidSubmissionError, PrerequisiteError
from mlebench.engine.byte_chunks import ByteChunks
from mlebench.engine.frames import read_frame, values_of
from mlebench.engine.raw_streams import md5_of
from mlebench.engine.records.jsontext import encode_json
from mlebench.engine.tables import Table, is_in, join_text, one_hot, renumber, unique
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
    split_guesses,
    split_records,
    words_as_numbers,
)
from mlebench.kit.detections import parse_objects
from mlebench.kit.headers import npy_shape, png_size
from mlebench.kit.image_catalogues import ImageCatalogue
from mlebench.kit.outputs import Output, accepts_paths
from mlebench.kit.picture_groups import (
    connected,
    groups_of_pictures,
    picture_hash,
    split_by_likeness,
    write_groups,
)
from mlebench.kit.raw import Raw, RawFile, open_raw
from mlebench.kit.rle import RunLengths, decode_runs, encode_runs, parse_masks, parse_runs
from mlebench.kit.samples import public_sample, public_sample_bytes, with_both_classes
from mlebench.kit.secret_draws import secret_order, secret_random
from mlebench.kit.sequence_groups import groups_of_sequences
from mlebench.kit.splits import split_groups, split_per_class, split_rows, split_whole_groups
from mlebench.kit.tokens import TokenSplit, split_tokens

__all__ = [
    "ByteChunks",
    "ImageCatalogue",
    "InvalidSubmissionError",
    "Output",
    "PrerequisiteError",
    "Raw",
    "RawFile",
    "RunLengths",
    "Table",
    "TokenSplit",
    "accepts_paths",
    "align",
    "as_text",
    "as_words",
    "column_values",
    "connected",
    "decode_runs",
    "encode_json",
    "encode_runs",
    "groups_of_pictures",
    "groups_of_sequences",
    "is_in",
    "join_text",
    "md5_of",
    "npy_shape",
    "one_hot",
    "open_raw",
    "parse_masks",
    "parse_objects",
    "parse_runs",
    "picture_hash",
    "png_size",
    "public_sample",
    "public_sample_bytes",
    "read_frame",
    "renumber",
    "require_columns",
    "require_only_columns",
    "require_row_sums",
    "require_rows",
    "rows_of_ids",
    "secret_order",
    "secret_random",
    "sorting_order",
    "split_by_likeness",
    "split_groups",
    "split_guesses",
    "split_per_class",
    "split_records",
    "split_rows",
    "split_tokens",
    "split_whole_groups",
    "unique",
    "values_of",
    "with_both_classes",
    "words_as_numbers",
    "write_groups",
]
