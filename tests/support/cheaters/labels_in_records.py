"""Labels in TFRecord files of test pictures."""

import re
from pathlib import Path

import pandas as pd

from mlebench.engine.records.tfrecords import tfrecords
from support.cheaters import cheater

# A feature is its name, then its value in three messages; each has its length before it.
NAME, TARGET = (
    re.compile(rb"image_name\x12.\n.\n.([\w.]+)", re.DOTALL),
    re.compile(rb"target\x12.\x1a.\n.(.)", re.DOTALL),
)


@cheater("L1", "siim-isic-melanoma-classification")
def target_of_melanoma(public: Path) -> pd.DataFrame | None:
    return _targets(public / "tfrecords", "image_name", "target")


@cheater("L2", "cassava-leaf-disease-classification")
def target_of_cassava(public: Path) -> pd.DataFrame | None:
    return _targets(public / "test_tfrecords", "image_id", "label")


def _targets(folder: Path, id: str, label: str) -> pd.DataFrame | None:
    rows = []
    for path in sorted(folder.glob("*test*.tfrec")):
        with path.open("rb") as stream:
            rows += [(NAME.search(record), TARGET.search(record)) for record in tfrecords(stream)]
    known = [(name[1].decode(), target[1][0]) for name, target in rows if name and target]
    return pd.DataFrame(known, columns=[id, label]) if known else None
