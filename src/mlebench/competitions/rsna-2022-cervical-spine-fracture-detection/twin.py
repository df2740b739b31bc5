import numpy as np

from mlebench.kit.twins import TwinFolder, dicom_bytes, nifti_bytes, rounded

VERTEBRAE = ("C1", "C2", "C3", "C4", "C5", "C6", "C7")
SIDE = 8  # pixels; the original has 512
CT_IMAGE = "1.2.840.10008.5.1.4.1.1.2"
UID_ROOT = "1.2.826.0.1.3680043"


def twin(raw: TwinFolder) -> None:
    """Signal: vertebra Cn is row n of every slice, bright as bone; a fracture is a dark gap in it."""
    count, later = raw.count(120, least=60), raw.count(4)
    numbers = raw.rng.permutation(np.cumsum(raw.rng.randint(1, 9, count + later)))
    ids = [f"{UID_ROOT}.{number}" for number in numbers]
    fractured = (raw.rng.rand(count + later, len(VERTEBRAE)) < [0.08, 0.15, 0.04, 0.06, 0.09, 0.15, 0.2]).astype(int)
    for place, (id, labels) in enumerate(zip(ids, fractured, strict=True)):
        _slices(raw, f"{'train' if place < count else 'test'}_images/{id}", id, labels)

    labels = dict(zip(VERTEBRAE, fractured[:count].T, strict=True))
    raw.write_csv(
        "train.csv", {"StudyInstanceUID": ids[:count], "patient_overall": fractured[:count].max(axis=1), **labels}
    )
    boxed = np.flatnonzero(fractured[:count].any(axis=1))[: count // 5]
    raw.write_csv("train_bounding_boxes.csv", _boxes(raw.rng, [ids[place] for place in boxed]))
    # Some of those with boxes were also segmented, and some others.
    others = np.setdiff1d(np.arange(count), boxed)
    for place in [*boxed[: count // 12], *others[: count // 16]]:
        raw.write(f"segmentations/{ids[place]}.nii", nifti_bytes(_segmentation(raw.rng)))

    kinds = ("C1", "C2", "patient_overall")
    rows = [(f"{id}_{kind}", id, kind) for id in ids[count:] for kind in kinds]
    row_ids, studies, types = map(list, zip(*rows, strict=True))
    raw.write_csv("test.csv", {"row_id": row_ids, "StudyInstanceUID": studies, "prediction_type": types})
    raw.write_csv("sample_submission.csv", {"row_id": row_ids, "fractured": [0.5] * len(rows)})


def _slices(raw: TwinFolder, folder: str, id: str, labels: np.ndarray) -> None:
    """One to three slices of a study; the first row is not a vertebra."""
    for number in range(1, raw.rng.randint(2, 5)):
        pixels = raw.rng.randint(0, 300, (SIDE, SIDE))
        pixels[1:, 1:-1] += 1000
        pixels[1:, raw.rng.randint(1, SIDE - 1)] -= 900 * labels
        elements = {
            0x00080016: ("UI", CT_IMAGE),
            0x00080018: ("UI", f"{id}.1.{number}"),
            0x00080060: ("CS", "CT"),
            0x00100020: ("LO", id.rpartition(".")[2]),
            0x0020000D: ("UI", id),
            0x00200013: ("IS", str(number)),
        }
        raw.write(f"{folder}/{number}.dcm", dicom_bytes(pixels.astype(np.uint16), elements))


def _boxes(rng: np.random.RandomState, ids: list[str]) -> dict[str, np.ndarray]:
    """Around a fracture on neighbouring slices; some were drawn to whole pixels."""
    repeats = rng.randint(1, 4, len(ids))
    count = int(repeats.sum())
    corners = {name: rounded(rng.uniform(20, 300, count), 5) for name in ("x", "y", "width", "height")}
    whole = rng.rand(count) < 0.2
    first = np.repeat(rng.randint(10, 200, len(ids)), repeats)
    within = np.arange(count) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return {
        "StudyInstanceUID": np.repeat(ids, repeats),
        **{name: np.where(whole, np.floor(values), values) for name, values in corners.items()},
        "slice_number": first + within,
    }


def _segmentation(rng: np.random.RandomState) -> np.ndarray:
    """Voxels numbered by their vertebra, from 1 to 7; 0 is none, and from 8 on they are in the chest."""
    voxels = np.repeat(np.arange(SIDE, 0, -1), 16).reshape(SIDE, 4, 4)
    return np.where(rng.rand(*voxels.shape) < 0.1, 0, voxels).astype(np.uint8).transpose(2, 1, 0)
