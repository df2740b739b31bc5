import numpy as np

from mlebench.kit import split_rows, split_whole_groups
from mlebench.kit.twins import TwinFolder, image_bytes

# Label: how often it is set. Normal is common, abnormal is rare.
SHARES = {
    "ETT - Abnormal": 0.01,
    "ETT - Borderline": 0.04,
    "ETT - Normal": 0.24,
    "NGT - Abnormal": 0.01,
    "NGT - Borderline": 0.02,
    "NGT - Incompletely Imaged": 0.09,
    "NGT - Normal": 0.16,
    "CVC - Abnormal": 0.11,
    "CVC - Borderline": 0.28,
    "CVC - Normal": 0.71,
    "Swan Ganz Catheter Present": 0.03,
}
STEP, WIDTH, RIBS = 4, 40, 8  # pixels: each label has a strip of the picture, and right of it may be a rib
UID_ROOT = "1.2.826.0.1.3680043.8.498."


def twin(raw: TwinFolder) -> None:
    """Signal: each label draws a bright tube across its own strip of the picture."""
    # The original also has the pictures as TFRecords, which nothing here reads; they are left out.
    count, later = raw.count(240, least=130), raw.count(40)
    # A patient has several pictures, on either side of the split, with much the same findings.
    patients = raw.rng.randint(0, count // 8 + 1, count)
    usual, today = (raw.rng.rand(rows, len(SHARES)) < list(SHARES.values()) for rows in (count // 8 + 1, count))
    labels = np.where(raw.rng.rand(count, len(SHARES)) < 0.2, today, usual[patients]).astype(int)
    _set_rare_labels(labels, patients)
    ids = _uids(raw.rng, count)
    names = np.array([raw.rng.bytes(5).hex()[:9] for _ in usual])
    columns = {"StudyInstanceUID": ids, **dict(zip(SHARES, labels.T, strict=True))}
    raw.write_csv("train.csv", columns | {"PatientID": names[patients]})
    raw.write_csv("train_annotations.csv", _annotations(raw.rng, ids, labels))
    _write_pictures(raw, "train", ids, labels, raw.rng.randint(0, 2, usual.shape)[patients])

    ids = _uids(raw.rng, later)
    raw.write_csv("sample_submission.csv", {"StudyInstanceUID": ids, **{name: [0] * later for name in SHARES}})
    labels = (raw.rng.rand(later, len(SHARES)) < list(SHARES.values())).astype(int)
    _write_pictures(raw, "test", ids, labels, raw.rng.randint(0, 2, labels.shape))


def _set_rare_labels(labels: np.ndarray, patients: np.ndarray) -> None:
    """Let each label occur among the test rows, of the split by pictures and of that by patients."""
    rows = np.arange(len(labels))
    _, test = split_rows(rows, test_size=0.1, seed=0)
    labels[test[: len(SHARES)]] = np.eye(len(SHARES))
    _, others = split_whole_groups(rows, patients, test_size=0.1, seed=0)
    absent = np.flatnonzero(~labels[others].any(axis=0))
    labels[np.resize(np.setdiff1d(others, test), len(absent)), absent] = 1


def _uids(rng: np.random.RandomState, count: int) -> list[str]:
    return [f"{UID_ROOT}{int.from_bytes(rng.bytes(15), 'big') + 10**36}" for _ in range(count)]


def _annotations(rng: np.random.RandomState, ids: list[str], labels: np.ndarray) -> dict[str, list]:
    """The course of each tube as points, for a third of the pictures; rows in no order."""
    rows, places = np.nonzero(labels * (rng.rand(len(ids), 1) < 0.33))
    order = rng.permutation(len(rows))
    points = rng.randint(-2, 3000, size=(len(rows), 3, 2)).tolist()
    return {
        "StudyInstanceUID": [ids[row] for row in rows[order]],
        "label": [list(SHARES)[place] for place in places[order]],
        "data": [str(course[: 2 + place % 2]) for course, place in zip(points, places, strict=True)],
    }


def _write_pictures(raw: TwinFolder, folder: str, ids: list[str], labels: np.ndarray, ribs: np.ndarray) -> None:
    for id, row, light in zip(ids, labels, ribs, strict=True):
        pixels = 70 + raw.rng.randint(-25, 26) + raw.rng.randint(-20, 21, size=(STEP * len(SHARES), WIDTH + RIBS))
        pixels[:, WIDTH:] += 70 * np.repeat(light, STEP)[:, None]
        for place in np.flatnonzero(row):
            left = raw.rng.randint(0, WIDTH // 4)
            pixels[STEP * place + 1 : STEP * place + 3, left : left + 3 * WIDTH // 4] += 70
        raw.write(f"{folder}/{id}.jpg", image_bytes(np.clip(pixels, 0, 255), "JPEG"))
