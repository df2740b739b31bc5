import math

import numpy as np

from mlebench.kit.twins import TwinFolder, dicom_bytes, hex_ids

FINDINGS = (
    "Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Consolidation", "ILD", "Infiltration",
    "Lung Opacity", "Nodule/Mass", "Other lesion", "Pleural effusion", "Pleural thickening", "Pneumothorax",
    "Pulmonary fibrosis",
)  # fmt: skip
NO_FINDING = "No finding"
SIDE = 28  # the original has two to three thousand pixels
RADIOLOGISTS = 17
DIGITAL_RADIOGRAPHY = "1.2.840.10008.5.1.4.1.1.1.1"
UID_ROOT = "1.2.826.0.1.3680043.8.498"


def twin(raw: TwinFolder) -> None:
    """Signal: a finding is a bright rectangle, and the brighter it is, the higher its class number."""
    count, later = raw.count(120, least=60), raw.count(12)
    ids = hex_ids(raw.rng, count + later, 32)
    rows = [row for id in ids[:count] for row in _examined(raw, "train", id)]
    shuffled = [rows[place] for place in raw.rng.permutation(len(rows))]
    columns = ("image_id", "class_name", "class_id", "rad_id", "x_min", "y_min", "x_max", "y_max")
    raw.write_csv("train.csv", dict(zip(columns, zip(*shuffled, strict=True), strict=True)))
    for id in ids[count:]:
        _examined(raw, "test", id)
    raw.write_csv("sample_submission.csv", {"image_id": ids[count:], "PredictionString": ["14 1 0 0 1 1"] * later})
    # The published preparation insists on these counts.
    raw.set_scaled(1500, math.ceil(count * 0.1))
    raw.set_scaled(13500, count - math.ceil(count * 0.1))


def _examined(raw: TwinFolder, folder: str, id: str) -> list[tuple]:
    """Write an image and have three radiologists examine it; returns their notes, a row each."""
    pixels = raw.rng.randint(0, 300, (SIDE, SIDE)).astype(np.uint16)
    readers = [f"R{number}" for number in raw.rng.permutation(RADIOLOGISTS)[:3] + 1]
    rows: list[tuple] = []
    for finding in raw.rng.permutation(len(FINDINGS))[: raw.rng.choice([0, 1, 2, 4], p=[0.5, 0.2, 0.2, 0.1])].tolist():
        left, top = raw.rng.randint(1, SIDE // 2, 2)
        right, bottom = (left, top) + raw.rng.randint(5, SIDE // 2 - 1, 2)
        pixels[top:bottom, left:right] = 800 + 200 * finding
        for reader in readers[: raw.rng.randint(1, 4)]:  # not all of them see it, and none sees it quite the same
            box = np.array([left, top, right, bottom]) + raw.rng.randint(-1, 2, 4)
            rows.append((id, FINDINGS[finding], finding, reader, *box.tolist()))
    elements = {
        0x00080016: ("UI", DIGITAL_RADIOGRAPHY),
        0x00080018: ("UI", f"{UID_ROOT}.{int(id, 16)}"),
        0x00080060: ("CS", "DX"),
    }
    raw.write(f"{folder}/{id}.dicom", dicom_bytes(pixels, elements))
    return rows or [(id, NO_FINDING, len(FINDINGS), reader, *[None] * 4) for reader in readers]
