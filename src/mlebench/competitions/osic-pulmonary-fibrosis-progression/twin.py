import numpy as np

from mlebench.kit import join_text, split_rows
from mlebench.kit.twins import TwinFolder, dicom_bytes

CT_IMAGE = "1.2.840.10008.5.1.4.1.1.2"  # DICOM's class of such images
UID_ROOT = "1.2.826.0.1.3680043"
SIDE = 8  # pixels; the original has 512 or more
SLICES = 2  # of a scan; the original has some hundreds

Columns = dict[str, np.ndarray]


def twin(raw: TwinFolder) -> None:
    """Signal: a patient's FVC stays near the first one and falls week by week, fastest for ex-smokers."""
    count = raw.count(40, least=20)
    names = np.array([f"ID{number:05d}637202{rest:012d}" for number, rest in _numbers(raw.rng, count)], dtype=object)
    visits = _visits(raw.rng, names)
    raw.write_csv("train.csv", visits)
    _, first_rows = np.unique(visits["Patient"], return_index=True)
    of_test = first_rows[:: max(2, count // 5)]  # the original shows some patients of train as an example of test
    raw.write_csv("test.csv", {name: values[of_test] for name, values in visits.items()})
    weeks = np.arange(-12, 134)
    patients = np.repeat(names[:: max(2, count // 5)], len(weeks))
    patient_week = join_text(patients, "_", np.tile(weeks, len(patients) // len(weeks)))
    constant = {"FVC": np.full(len(patients), 2000), "Confidence": np.full(len(patients), 100)}
    raw.write_csv("sample_submission.csv", {"Patient_Week": patient_week, **constant})

    start = dict(zip(visits["Patient"][first_rows], visits["FVC"][first_rows], strict=True))
    for folder, patients in (("train", names), ("test", names[:: max(2, count // 5)])):
        for patient in patients:
            _write_scan(raw, f"{folder}/{patient}", patient, int(start[patient]))


def _numbers(rng: np.random.RandomState, count: int) -> list[tuple[int, int]]:
    """Ascending numbers with gaps, each with one that means nothing."""
    ascending = np.cumsum(rng.randint(1, 3, count)) + 6
    return list(zip(ascending.tolist(), rng.randint(1, 10**9, count).tolist(), strict=True))


def _visits(rng: np.random.RandomState, names: np.ndarray) -> Columns:
    count = len(names)
    sizes = rng.randint(6, 11, count)
    patient = np.repeat(np.arange(count), sizes)
    visit = np.arange(len(patient)) - (np.cumsum(sizes) - sizes)[patient]
    steps = np.where(visit == 0, rng.randint(-5, 30, len(patient)), rng.randint(1, 14, len(patient)))
    # Some patients of the train split were seen twice in one week, as in the original.
    twice = rng.rand(count) < 0.4
    twice[split_rows(np.arange(count), test_size=0.1, seed=0)[1]] = False
    steps[(visit == 2) & twice[patient]] = 0
    walked = np.cumsum(steps)
    weeks = walked - (walked - steps)[visit == 0][patient]

    smoking = rng.randint(0, 3, count)
    base, slope = rng.randint(1500, 4500, count), np.array([7.0, 3.0, 5.0])[smoking]
    fvc = (base[patient] - slope[patient] * weeks + rng.randint(-60, 60, len(patient))).astype(int)
    usual = base + rng.randint(500, 2000, count)  # of healthy people of that age, sex and height
    return {
        "Patient": names[patient],
        "Weeks": weeks,
        "FVC": fvc,
        "Percent": np.char.mod("%.15g", fvc / usual[patient] * 100),
        "Age": rng.randint(49, 89, count)[patient],
        "Sex": rng.choice(["Male", "Male", "Male", "Female"], count)[patient],
        "SmokingStatus": np.array(["Ex-smoker", "Never smoked", "Currently smokes"])[smoking][patient],
    }


def _write_scan(raw: TwinFolder, folder: str, patient: str, fvc: int) -> None:
    """Write a scan: the larger the lung's capacity, the darker the image."""
    for number in range(1, SLICES + 1):
        pixels = 3000 - fvc // 2 + raw.rng.randint(0, 200, (SIDE, SIDE))
        uid = f"{UID_ROOT}.{patient[2:7].lstrip('0')}.{number}"
        elements = {
            0x00080016: ("UI", CT_IMAGE),
            0x00080018: ("UI", uid),
            0x00080060: ("CS", "CT"),
            0x00100020: ("LO", patient),
            0x00180050: ("DS", "1.25"),
            0x00200013: ("IS", str(number)),
        }
        raw.write(f"{folder}/{number}.dcm", dicom_bytes(pixels.clip(0, 4095).astype(np.uint16), elements))
