import numpy as np

from mlebench.kit.twins import TwinFolder, dicom_bytes

SERIES = ("FLAIR", "T1w", "T1wCE", "T2w")
SIDE = 8  # the original has 256 to 512 pixels
CENTRE = slice(SIDE // 4, SIDE - SIDE // 4)
MR_IMAGE = "1.2.840.10008.5.1.4.1.1.4"
UID_ROOT = "1.2.826.0.1.3680043.8.498"


def twin(raw: TwinFolder) -> None:
    """Signal: where the promoter is methylated (1), the middle of the T1wCE slices is brighter."""
    patients, others = raw.count(100, least=90), raw.count(8)
    numbers = np.cumsum(raw.rng.randint(1, 3, patients + others)) - 1  # with gaps
    train, later = numbers[:patients], numbers[patients:]
    methylated = (raw.rng.rand(len(train)) < 0.52).astype(int)
    raw.write_csv("train_labels.csv", {"BraTS21ID": [_id(number) for number in train], "MGMT_value": methylated})
    raw.write_csv(
        "sample_submission.csv", {"BraTS21ID": [_id(number) for number in later], "MGMT_value": [0.5] * others}
    )
    for number, value in zip(train, methylated, strict=True):
        _scan(raw, f"train/{_id(number)}", number, bool(value), blank=number == train[-1])
    for number in later:
        _scan(raw, f"test/{_id(number)}", number, raw.rng.rand() < 0.5)


def _id(number: int) -> str:
    return f"{number:05d}"


def _scan(raw: TwinFolder, folder: str, number: int, methylated: bool, *, blank: bool = False) -> None:
    """A patient's four series of one or two slices; their numbers begin anywhere. A blank FLAIR is all zeros."""
    for place, series in enumerate(SERIES):
        first, count = raw.rng.randint(1, 12), raw.rng.choice([1, 1, 1, 2])
        pixels = raw.rng.randint(0, 400, (count, SIDE, SIDE)).astype(np.uint16)
        if methylated and series == "T1wCE":
            pixels[:, CENTRE, CENTRE] += 300
        if blank and series == "FLAIR":
            pixels[:] = 0
        for slice_number, image in enumerate(pixels, start=first):
            elements = {
                0x00080016: ("UI", MR_IMAGE),
                0x00080018: ("UI", f"{UID_ROOT}.{number}.{place}.{slice_number}"),
                0x00080060: ("CS", "MR"),
                0x0008103E: ("LO", series),
                0x00100020: ("LO", _id(number)),
                0x00200013: ("IS", str(slice_number)),
            }
            raw.write(f"{folder}/{series}/Image-{slice_number}.dcm", dicom_bytes(image, elements))
