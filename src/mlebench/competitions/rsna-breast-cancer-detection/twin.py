import numpy as np

from mlebench.kit import join_text, split_rows
from mlebench.kit.twins import TwinFolder, dicom_bytes

MAMMOGRAM = "1.2.840.10008.5.1.4.1.1.1.2"  # DICOM's class of such images
HEIGHT, WIDTH = 16, 12  # pixels; the original has some thousands
TEST_COLUMNS = ("site_id", "patient_id", "image_id", "laterality", "view", "age", "implant", "machine_id")

Columns = dict[str, np.ndarray]


def twin(raw: TwinFolder) -> None:
    """Signal: a breast with cancer has a bright spot in most of its images, and the patient tends to be older."""
    count = raw.count(60, least=20)
    ids = sorted(raw.rng.choice(np.arange(5, 9 * count + 900), count, replace=False).tolist(), key=str)
    ages = raw.rng.randint(40, 90, count).astype(float)
    ill = raw.rng.rand(count, 2) < 0.001 * (ages - 20)[:, None]  # left, right
    _, test = split_rows(np.arange(count), test_size=0.1, seed=42)
    ill[test[0]] = True, False  # the test set has both

    columns = _images(raw, ids, ages, ill)
    raw.write_csv("train.csv", columns)
    _write_files(raw, "train_images", columns)

    later = _images(raw, [10008], ages[:1], ill[:1])  # no more than one patient, as in the original
    breasts = join_text(later["patient_id"], "_", later["laterality"])
    raw.write_csv("test.csv", {name: later[name] for name in TEST_COLUMNS} | {"prediction_id": breasts})
    both = sorted(set(breasts))
    raw.write_csv("sample_submission.csv", {"prediction_id": both, "cancer": [0.0210584] * len(both)})
    _write_files(raw, "test_images", later)


def _images(raw: TwinFolder, ids: list[int], ages: np.ndarray, ill: np.ndarray) -> Columns:
    """A row for each image: two or more views of each breast; a few patients have only one breast imaged."""
    rng, patients = raw.rng, len(ids)
    images = rng.choice([2, 3, 4], (patients, 2), p=[0.8, 0.15, 0.05])
    images[:, 1] *= rng.rand(patients) > 0.05
    breast = np.repeat(np.arange(2 * patients), images.ravel())
    patient, count = breast // 2, len(breast)
    view = np.arange(count) - np.searchsorted(breast, breast)  # within the breast
    cancer = ill.ravel()[breast]
    site = rng.randint(1, 3, patients)[patient]
    biopsy = cancer | (rng.rand(2 * patients) < 0.04)[breast]
    birads = np.where(biopsy, 0.0, rng.randint(1, 3, 2 * patients)[breast])
    first_site = site == 1  # only this site records these
    return {
        "site_id": site,
        "patient_id": np.array(ids)[patient],
        "image_id": rng.permutation(40 * count)[:count] * 1_009 + 22_481,
        "laterality": np.where(breast % 2, "R", "L"),
        "view": np.array(["CC", "MLO", "ML", "AT"])[view],
        "age": _with_gaps(ages[patient], rng.rand(patients)[patient] > 0.02),
        "cancer": cancer.astype(int),
        "biopsy": biopsy.astype(int),
        "invasive": (cancer & (rng.rand(2 * patients) < 0.7)[breast]).astype(int),
        "BIRADS": _with_gaps(birads, first_site),
        "implant": (rng.rand(patients) < 0.03)[patient].astype(int),
        "density": _with_gaps(rng.choice(list("ABCD"), patients)[patient], first_site),
        "machine_id": rng.choice([21, 29, 48, 49, 170, 216], patients)[patient],
        "difficult_negative_case": (birads == 0) & ~cancer,
    }


def _with_gaps(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    cells = values.astype(object)
    cells[~there] = None
    return cells


def _write_files(raw: TwinFolder, folder: str, columns: Columns) -> None:
    facts = zip(*(columns[name].tolist() for name in ("patient_id", "image_id", "laterality", "cancer")), strict=True)
    for patient, image, side, cancer in facts:
        elements = {
            0x00080016: ("UI", MAMMOGRAM),
            0x00080018: ("UI", f"1.2.840.10009.1.2.3.{patient}.1.{image}"),
            0x00080060: ("CS", "MG"),
            0x00100020: ("LO", f"{patient}"),
            0x00200013: ("IS", f"{image}"),
            0x00200062: ("CS", side),
        }
        raw.write(f"{folder}/{patient}/{image}.dcm", dicom_bytes(_breast(raw.rng, side, cancer), elements))


def _breast(rng: np.random.RandomState, side: str, cancer: int) -> np.ndarray:
    """Half an ellipse at the edge: on the left for the left breast."""
    rows, columns = np.ogrid[:HEIGHT, :WIDTH]
    tissue = np.square((rows - HEIGHT / 2) / (HEIGHT / 2)) + np.square(columns / WIDTH) < rng.uniform(0.5, 0.9)
    pixels = tissue * (rng.randint(800, 1400) + rng.randint(-200, 201, (HEIGHT, WIDTH)))
    if cancer and rng.rand() < 0.9:
        row, column = rng.randint(4, HEIGHT - 5), rng.randint(0, WIDTH // 2)
        pixels[row : row + 2, column : column + 2] = 3200
    return (pixels if side == "L" else pixels[:, ::-1]).astype(np.uint16)
