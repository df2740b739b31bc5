from collections.abc import Sequence

import numpy as np

from mlebench.kit import one_hot
from mlebench.kit.twins import TwinFolder, dicom_bytes, hex_ids

APPEARANCES = ("Negative for Pneumonia", "Typical Appearance", "Indeterminate Appearance", "Atypical Appearance")
SHARES = (0.28, 0.4, 0.18, 0.14)
# Where the opacities of each appearance are, as shares of width and height: left, top, right, bottom.
OPACITIES = ((), ((0.1, 0.5, 0.4, 0.9), (0.6, 0.5, 0.9, 0.9)), ((0.3, 0.3, 0.7, 0.7),), ((0.5, 0.05, 0.9, 0.4),))
HEIGHT, WIDTH = 20, 24  # the original has some thousand pixels
NEGATIVE, NONE = "negative 1 0 0 1 1", "none 1 0 0 1 1"
COMPUTED_RADIOGRAPHY = "1.2.840.10008.5.1.4.1.1.1"
UID_ROOT = "1.2.826.0.1.3680043.8.498"


def twin(raw: TwinFolder) -> None:
    """Signal: opacities are bright; two in the lower half are typical, one in the middle is indeterminate."""
    count, later = raw.count(120, least=90), raw.count(15)
    ids = hex_ids(raw.rng, count + later, 12)
    studies, others = sorted(ids[:count]), sorted(ids[count:])

    shown = raw.rng.choice(len(SHARES), count, p=SHARES)
    labels = one_hot(np.array(APPEARANCES, dtype=object)[shown], APPEARANCES)
    raw.write_csv("train_study_level.csv", {"id": [f"{study}_study" for study in studies], **labels})
    images = _images(raw, "train", studies, shown)
    raw.write_csv("train_image_level.csv", images)
    images = _images(raw, "test", others, raw.rng.choice(len(SHARES), later, p=SHARES))["id"]
    guesses = [NEGATIVE] * later + [NONE] * len(images)
    raw.write_csv(
        "sample_submission.csv",
        {"id": [*(f"{study}_study" for study in others), *images], "PredictionString": guesses},
    )


def _images(raw: TwinFolder, folder: str, studies: Sequence[str], shown: np.ndarray) -> dict[str, list]:
    """Make the images of studies; returns their table, in order of ids."""
    # Few studies have two images. Some images of a pneumonia show no opacity.
    taken = np.repeat(np.arange(len(studies)), np.where(raw.rng.rand(len(studies)) < 0.06, 2, 1))
    visible = np.where(raw.rng.rand(len(taken)) < 0.08, 0, shown[taken])
    ids = hex_ids(raw.rng, 2 * len(taken), 12)
    rows = []
    for number, (place, appearance) in enumerate(zip(taken.tolist(), visible.tolist(), strict=True)):
        boxes, image, series = _opacities(raw.rng, appearance), ids[2 * number], ids[2 * number + 1]
        name = f"{folder}/{studies[place]}/{series}/{image}.dcm"
        raw.write(name, _radiograph(raw.rng, boxes, f"{UID_ROOT}.{int(image, 16)}"))
        keys = ("x", "y", "width", "height")
        table = [dict(zip(keys, map(float, (x, y, _cut(r - x), _cut(b - y))), strict=True)) for x, y, r, b in boxes]
        label = " ".join(f"opacity 1 {x} {y} {right} {bottom}" for x, y, right, bottom in boxes)
        rows.append((f"{image}_image", str(table) if table else None, label or NONE, studies[place]))
    columns = zip(*sorted(rows), strict=True)
    return dict(zip(("id", "boxes", "label", "StudyInstanceUID"), map(list, columns), strict=True))


def _opacities(rng: np.random.RandomState, appearance: int) -> list[list[float]]:
    """Boxes in pixels: left, top, right, bottom."""
    shares = np.array(OPACITIES[appearance]).reshape(-1, 4)
    return _cut((shares + rng.uniform(-0.05, 0.05, shares.shape)) * [WIDTH, HEIGHT, WIDTH, HEIGHT]).tolist()


def _cut(values: np.ndarray | float) -> np.ndarray:
    return np.round(values, 5)


def _radiograph(rng: np.random.RandomState, boxes: list[list[float]], uid: str) -> bytes:
    pixels = rng.randint(20, 90, (HEIGHT, WIDTH)).astype(np.uint8)
    for box in boxes:
        left, top, right, bottom = np.round(box).astype(int)
        pixels[top:bottom, left:right] += 120
    elements = {
        0x00080016: ("UI", COMPUTED_RADIOGRAPHY),
        0x00080018: ("UI", uid),
        0x00080060: ("CS", "CR"),
    }
    return dicom_bytes(pixels, elements)
