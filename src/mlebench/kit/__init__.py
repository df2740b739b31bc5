"""What a competition's author works with. Competitions import from here and from `mlebench.metrics` only."""

from mlebench.errors import InvalidSubmissionError, PrerequisiteError
from mlebench.kit.camera_traps import camera_trap_frames, camera_trap_picture
from mlebench.kit.catalogue_twins import TwinCategories, write_catalogue_twin
from mlebench.kit.catalogues import ImageCatalogue
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
    split_records,
    words_as_numbers,
)
from mlebench.kit.dicom import dicom_bytes
from mlebench.kit.files import Raw, RawFile, encode_json, md5_of, open_raw
from mlebench.kit.frames import read_frame, values_of
from mlebench.kit.headers import npy_shape, png_size
from mlebench.kit.matlab import mat_bytes
from mlebench.kit.nifti import nifti_bytes
from mlebench.kit.outputs import Output
from mlebench.kit.rle import Runs, decode_runs, encode_runs, parse_masks, parse_runs
from mlebench.kit.samples import public_sample, public_sample_bytes
from mlebench.kit.splits import split_groups, split_per_class, split_rows
from mlebench.kit.tables import Table, is_in, join_text, one_hot, renumber, unique
from mlebench.kit.texts import Pieces
from mlebench.kit.tfrecords import tfrecord_bytes
from mlebench.kit.tokens import TokenSplit, split_tokens, write_token_twin
from mlebench.kit.twins import (
    TwinFolder,
    aiff_bytes,
    bson_bytes,
    csv_bytes,
    hex_ids,
    image_bytes,
    json_bytes,
    json_lines_bytes,
    mp4_bytes,
    npy_bytes,
    parquet_bytes,
    records_of,
    rounded,
    seven_zip_bytes,
    tar_gz_bytes,
    wav_bytes,
    zip_bytes,
)

__all__ = [
    "ImageCatalogue",
    "InvalidSubmissionError",
    "Output",
    "Pieces",
    "PrerequisiteError",
    "Raw",
    "RawFile",
    "Runs",
    "Table",
    "TokenSplit",
    "TwinCategories",
    "TwinFolder",
    "aiff_bytes",
    "align",
    "as_text",
    "as_words",
    "bson_bytes",
    "camera_trap_frames",
    "camera_trap_picture",
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
    "mat_bytes",
    "md5_of",
    "mp4_bytes",
    "nifti_bytes",
    "npy_bytes",
    "npy_shape",
    "one_hot",
    "open_raw",
    "parquet_bytes",
    "parse_masks",
    "parse_runs",
    "png_size",
    "public_sample",
    "public_sample_bytes",
    "read_frame",
    "records_of",
    "renumber",
    "require_columns",
    "require_only_columns",
    "require_row_sums",
    "require_rows",
    "rounded",
    "rows_of_ids",
    "seven_zip_bytes",
    "sorting_order",
    "split_groups",
    "split_per_class",
    "split_records",
    "split_rows",
    "split_tokens",
    "tar_gz_bytes",
    "tfrecord_bytes",
    "unique",
    "values_of",
    "wav_bytes",
    "words_as_numbers",
    "write_catalogue_twin",
    "write_token_twin",
    "zip_bytes",
]
