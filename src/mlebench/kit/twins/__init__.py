"""Twins: tiny synthetic raw data in a competition's exact layout.

A competition's `twin(raw)` fills a `TwinFolder`. Randomness comes from its `rng` alone, and floats are rounded to six
decimals, so that a twin is the same on every machine.
"""

from mlebench.engine.records.tfrecords import tfrecord_bytes
from mlebench.kit.twins.bursts import scenes_of_bursts, uneven_light
from mlebench.kit.twins.camera_traps import camera_trap_frames, camera_trap_picture
from mlebench.kit.twins.catalogues import TwinCategories, write_catalogue_twin
from mlebench.kit.twins.dicom import dicom_bytes
from mlebench.kit.twins.folder import TwinFolder
from mlebench.kit.twins.formats import (
    bson_bytes,
    csv_bytes,
    csv_pieces,
    hex_ids,
    joined,
    json_bytes,
    json_lines_bytes,
    npy_bytes,
    parquet_bytes,
    pieces_of,
    random_hex,
    records_of,
    rounded,
    seven_zip_bytes,
    tar_gz_bytes,
    zip_bytes,
)
from mlebench.kit.twins.matlab import mat_bytes
from mlebench.kit.twins.media import aiff_bytes, image_bytes, mp4_bytes, wav_bytes
from mlebench.kit.twins.nifti import nifti_bytes
from mlebench.kit.twins.sentences import write_token_twin

__all__ = [
    "TwinCategories",
    "TwinFolder",
    "aiff_bytes",
    "bson_bytes",
    "camera_trap_frames",
    "camera_trap_picture",
    "csv_bytes",
    "csv_pieces",
    "dicom_bytes",
    "hex_ids",
    "image_bytes",
    "joined",
    "json_bytes",
    "json_lines_bytes",
    "mat_bytes",
    "mp4_bytes",
    "nifti_bytes",
    "npy_bytes",
    "parquet_bytes",
    "pieces_of",
    "random_hex",
    "records_of",
    "rounded",
    "scenes_of_bursts",
    "seven_zip_bytes",
    "tar_gz_bytes",
    "tfrecord_bytes",
    "uneven_light",
    "wav_bytes",
    "write_catalogue_twin",
    "write_token_twin",
    "zip_bytes",
]
