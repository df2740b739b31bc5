from typing import Any

import numpy as np

from mlebench.kit.twins import TwinFolder, csv_bytes, hex_ids, json_bytes, rounded, seven_zip_bytes

SIDE = 8  # pixels; 75 in the original
# Numbers that programs print differently: too many digits, no fraction, an exponent.
ODD_NUMBERS = (-27.878360999999998, -20, 1e-05, -22.599999999999998)


def twin(raw: TwinFolder) -> None:
    """Signal: a ship is a small, very bright spot in both bands; an iceberg is larger and dimmer in the second one."""
    train = _images(raw.rng, raw.count(160, least=80))
    later = _images(raw.rng, raw.count(40))
    # The original test file has its fields in another order, which the new public test images follow.
    unlabelled = [{name: image[name] for name in ("id", "inc_angle", "band_1", "band_2")} for image in later]
    sample = csv_bytes({"id": [image["id"] for image in later], "is_iceberg": [0.5] * len(later)})
    raw.write("train.json.7z", seven_zip_bytes({"data/processed/train.json": json_bytes(train)}))
    raw.write("test.json.7z", seven_zip_bytes({"data/processed/test.json": json_bytes(unlabelled)}))
    raw.write("sample_submission.csv.7z", seven_zip_bytes({"data/processed/sample_submission.csv": sample}))


def _images(rng: np.random.RandomState, count: int) -> list[dict[str, Any]]:
    """Backscatter in decibels; for some images the angle is not known.

    Images of one pass share an angle, and most of them show the same (S23): so here each angle belongs to one class.
    """
    icebergs = (rng.rand(count) < 0.47).astype(int).tolist()
    passes = rounded(rng.uniform(30, 46, (max(count // 4, 1), 2)), 4).tolist()  # angles: without icebergs, and with
    angles = [passes[rng.randint(len(passes))][iceberg] for iceberg in icebergs]
    return [
        {
            "id": id,
            "band_1": _band(rng, iceberg, -20),
            "band_2": _band(rng, iceberg, -26 if iceberg else -22),
            "inc_angle": angle if rng.rand() < 0.92 else "na",
            "is_iceberg": iceberg,
        }
        for id, iceberg, angle in zip(hex_ids(rng, count, digits=8), icebergs, angles, strict=True)
    ]


def _band(rng: np.random.RandomState, iceberg: int, sea: float) -> list[float]:
    pixels = sea + rng.normal(0, 2, (SIDE, SIDE))
    size, brightness = (4, 12) if iceberg else (2, 20)
    top, left = rng.randint(0, SIDE - size, 2)
    pixels[top : top + size, left : left + size] += brightness
    values = rounded(pixels).ravel().tolist()
    if rng.rand() < 0.1:
        values[rng.randint(len(values))] = ODD_NUMBERS[rng.randint(len(ODD_NUMBERS))]
    return values
