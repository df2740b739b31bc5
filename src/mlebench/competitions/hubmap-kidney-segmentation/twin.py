import numpy as np

from mlebench.kit import encode_runs
from mlebench.kit.twins import TwinFolder, image_bytes, json_bytes, rounded

GLASS, TISSUE, GLOMERULUS = (236, 233, 238), (208, 160, 190), (150, 90, 150)


def twin(raw: TwinFolder) -> None:
    """Signal: glomeruli are discs, clearly darker than the tissue around them, which is darker than the glass."""
    counts = {"train": raw.count(12) + raw.count(3), "test": raw.count(5)}
    raw.set_scaled(12, raw.count(12))
    raw.set_scaled(3, raw.count(3))

    ids = _ids(raw.rng, sum(counts.values()))
    masks = [_slide(raw, "train" if place < counts["train"] else "test", id) for place, id in enumerate(ids)]
    train, later = ids[: counts["train"]], ids[counts["train"] :]
    raw.write_csv("train.csv", {"id": train, "encoding": [_runs(mask) for mask in masks[: len(train)]]})
    raw.write_csv("sample_submission.csv", {"id": later, "predicted": [None] * len(later)})
    # All slides, including those of the test folder, in another order.
    order = raw.rng.permutation(len(ids))
    information = _information(raw.rng, [ids[place] for place in order], [masks[place] for place in order])
    raw.write_csv("HuBMAP-20-dataset_information.csv", information)


def _ids(rng: np.random.RandomState, count: int) -> list[str]:
    """Nine hexadecimal digits; some look like numbers (`0486052bb`, `26dc41664`), but none is one."""
    numbers = (rng.randint(16**6) + 7919 * np.arange(count)) % 16**6  # an odd step: all different
    letters = rng.choice(list("abcdf"), size=(2, count))
    return [
        f"{number:06x}{first}{rng.randint(10)}{last}" for number, first, last in zip(numbers, *letters, strict=True)
    ]


def _slide(raw: TwinFolder, folder: str, id: str) -> np.ndarray:
    """Write one slide's files; the outlines of glomeruli are published for train slides only."""
    rng = raw.rng
    width, height = rng.randint(56, 90), rng.randint(40, 72)
    y, x = np.mgrid[:height, :width]
    tissue = ((x / width - 0.5) / 0.46) ** 2 + ((y / height - 0.5) / 0.44) ** 2 < 1
    circles = [
        (rng.randint(width // 4, 3 * width // 4), rng.randint(height // 4, 3 * height // 4), rng.randint(3, 8))
        for _ in range(rng.randint(2, 6))
    ]
    mask = np.zeros((height, width), dtype=bool)
    for at_x, at_y, radius in circles:
        mask |= (x - at_x) ** 2 + (y - at_y) ** 2 <= radius**2
    colours = np.array([GLASS, TISSUE, GLOMERULUS])[np.where(mask, 2, tissue.astype(int))]
    pixels = np.clip(colours + rng.randint(-12, 13, size=colours.shape), 0, 255)
    raw.write(f"{folder}/{id}.tiff", image_bytes(pixels, "TIFF"))

    cortex = [[0, 0], [width, 0], [width, height], [0, height], [0, 0]]
    raw.write(f"{folder}/{id}-anatomical-structure.json", json_bytes([_feature("Cortex", cortex)]))
    if folder == "train":
        outlines = [_feature("glomerulus", _octagon(*circle)) for circle in circles]
        raw.write(f"{folder}/{id}.json", json_bytes(outlines))
    return mask


def _runs(mask: np.ndarray) -> str:
    return " ".join(map(str, encode_runs(mask)))


def _octagon(x: int, y: int, radius: int) -> list[list[int]]:
    corner = round(radius * 0.7)
    around = [(radius, 0), (corner, corner), (0, radius), (-corner, corner)]
    around += [(-dx, -dy) for dx, dy in around]
    return [[int(x + dx), int(y + dy)] for dx, dy in [*around, around[0]]]


def _feature(name: str, outline: list[list[int]]) -> dict:
    return {
        "type": "Feature",
        "id": "PathAnnotationObject",
        "geometry": {"type": "Polygon", "coordinates": [outline]},
        "properties": {"classification": {"name": name, "colorRGB": -3140401}, "isLocked": True, "measurements": []},
    }


def _information(rng: np.random.RandomState, ids: list[str], masks: list[np.ndarray]) -> dict:
    count = len(ids)
    weight, height = rounded(rng.uniform(55, 130, count), 1), rounded(rng.uniform(150, 190, count), 1)
    cortex = rng.randint(55, 86, count)
    return {
        "image_file": [f"{id}.tiff" for id in ids],
        "width_pixels": [mask.shape[1] for mask in masks],
        "height_pixels": [mask.shape[0] for mask in masks],
        "anatomical_structures_segmention_file": [f"{id}-anatomical-structure.json" for id in ids],
        "glomerulus_segmentation_file": [f"{id}.json" for id in ids],
        "patient_number": rng.randint(60000, 70000, count),
        "race": rng.choice(["White", "Black or African American"], count),
        "ethnicity": ["Not Hispanic or Latino"] * count,
        "sex": rng.choice(["Male", "Female"], count),
        "age": rng.randint(21, 80, count),
        "weight_kilograms": weight,
        "height_centimeters": height,
        "bmi_kg/m^2": rounded(weight / (height / 100) ** 2, 1),
        "laterality": rng.choice(["Left", "Right"], count),
        "percent_cortex": cortex,
        "percent_medulla": 100 - cortex,
    }
