from typing import Any

import numpy as np

from mlebench.kit import split_whole_groups
from mlebench.kit.twins import TwinFolder, dicom_bytes, image_bytes, records_of, tfrecord_bytes

TFRECORD_FILES = 16
SITES = ("torso", "lower extremity", "upper extremity", "head/neck", "palms/soles", "oral/genital")
BENIGN = ("unknown", "nevus", "seborrheic keratosis", "lentigo NOS")
PHOTOGRAPH = "1.2.840.10008.5.1.4.1.1.77.1.4"  # DICOM's class of such images
HEIGHT, WIDTH = 16, 24  # pixels; the original has some thousands

Columns = dict[str, list[Any]]


def twin(raw: TwinFolder) -> None:
    """Signal: a melanoma is a dark mole that is larger than benign ones, and age and patient matter."""
    size, later_size = raw.count(12, least=6), raw.count(2, least=1)  # of a TFRecord file
    count, later_count = TFRECORD_FILES * size - 1, TFRECORD_FILES * later_size  # the last file may be smaller
    names = [f"ISIC_{number:07d}" for number in raw.rng.permutation(9 * (count + later_count))[: count + later_count]]
    order, ages = raw.rng.permutation(count), raw.rng.randint(2, 18, count) * 5
    known = _patients(raw.rng, names[:count], ages)
    numbers, patients = np.unique(known["patient_id"], return_inverse=True)
    factors = np.where(raw.rng.rand(len(numbers)) < 0.25, 6, 0.1)  # some patients have many
    ill = raw.rng.rand(count) < 0.004 * ages * factors[patients]
    # The two files that become the test set have both classes, and so has a test set of whole patients.
    some = order[[*range(size), *range(6 * size, 7 * size)]]
    _, whole = split_whole_groups(np.arange(count), known["patient_id"], test_size=2 * size, seed=0)
    for rows in (some, np.setdiff1d(whole, some)):
        ill[rows[0]] |= not ill[rows].any()
        ill[rows[-1]] = False

    columns = known | {
        "diagnosis": np.where(ill, "melanoma", raw.rng.choice(BENIGN, count)).tolist(),
        "benign_malignant": np.where(ill, "malignant", "benign").tolist(),
        "target": ill.astype(int).tolist(),
    }
    raw.write_csv("train.csv", columns)
    _write_images(raw, "train", columns, order, size)

    later = _patients(raw.rng, names[count:], raw.rng.randint(2, 18, later_count) * 5)
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"image_name": names[count:], "target": [0] * later_count})
    _write_images(raw, "test", later, np.arange(later_count), later_size)


def _patients(rng: np.random.RandomState, names: list[str], ages: np.ndarray) -> Columns:
    """What is known about each image's patient, with gaps; most have several images."""
    count = len(names)
    patients = (rng.randint(0, 1 + count // 5, count) * 1_009 + 4_382).tolist()
    columns: Columns = {
        "image_name": names,
        "patient_id": [f"IP_{number:07d}" for number in patients],
        "sex": rng.choice(["male", "female"], count).tolist(),
        "age_approx": ages.astype(float).tolist(),
        "anatom_site_general_challenge": rng.choice(SITES, count, p=[0.5, 0.25, 0.15, 0.06, 0.03, 0.01]).tolist(),
    }
    for name, share in (("sex", 0.01), ("age_approx", 0.01), ("anatom_site_general_challenge", 0.03)):
        gaps = rng.rand(count) < share
        columns[name] = [None if gap else cell for cell, gap in zip(columns[name], gaps, strict=True)]
    return columns


def _write_images(raw: TwinFolder, part: str, columns: Columns, order: np.ndarray, size: int) -> None:
    """Each image three times: as DICOM, as JPEG, and as a record in one of the TFRecord files."""
    records: list[dict[str, bytes | int | float]] = []
    for row in records_of(columns):
        name, pixels = row["image_name"], _skin(raw.rng, row.get("target", 0))
        image = image_bytes(pixels, "JPEG")
        raw.write(f"jpeg/{part}/{name}.jpg", image)
        raw.write(f"{part}/{name}.dcm", dicom_bytes(pixels, _elements(row)))
        sex, site = row["sex"], row["anatom_site_general_challenge"]
        record = {
            "image": image,
            "image_name": name.encode(),
            "patient_id": int(row["patient_id"][3:]),
            "sex": -1 if sex is None else int(sex == "male"),
            "age_approx": int(row["age_approx"] or 0),
            "anatom_site_general_challenge": -1 if site is None else SITES.index(site),
        }
        records.append(record | ({"target": row["target"]} if "target" in row else {}))
    for number in range(TFRECORD_FILES):
        chosen = [records[place] for place in order[number * size : (number + 1) * size]]
        raw.write(f"tfrecords/{part}{number:02d}-{len(chosen)}.tfrec", tfrecord_bytes(chosen))


def _elements(row: dict[str, Any]) -> dict[int, tuple[str, str | int | bytes]]:
    return {
        0x00080016: ("UI", PHOTOGRAPH),
        0x00080018: ("UI", f"1.3.6.1.4.1.5962.{int(row['image_name'][5:])}"),
        0x00080060: ("CS", "XC"),
        0x00100020: ("LO", row["patient_id"]),
        0x00100040: ("CS", (row["sex"] or "")[:1].upper()),
        0x00101010: ("AS", f"{int(row['age_approx'] or 0):03d}Y"),
    }


def _skin(rng: np.random.RandomState, ill: int) -> np.ndarray:
    rows, columns = np.ogrid[:HEIGHT, :WIDTH]
    middle, radius = rng.uniform(0.4, 0.6, 2) * (HEIGHT, WIDTH), rng.uniform(2, 4) + 2 * ill
    mole = np.square(rows - middle[0]) + np.square(columns - middle[1]) < radius**2
    pixels = np.where(mole[:, :, None], (140 - 40 * ill, 90 - 30 * ill, 70), (220, 180, 160))
    return np.clip(pixels + rng.randint(-20, 21) + rng.randint(-8, 9, pixels.shape), 0, 255).astype(np.uint8)
