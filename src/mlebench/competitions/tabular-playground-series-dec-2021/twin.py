import numpy as np

from mlebench.kit.twins import TwinFolder

# Name: lowest and highest value. The original comes from a generator: aspects leave the circle, shades leave 0 to 255.
MEASURES = {
    "Aspect": (-33, 407),
    "Slope": (-3, 64),
    "Horizontal_Distance_To_Hydrology": (-92, 1602),
    "Vertical_Distance_To_Hydrology": (-317, 647),
    "Horizontal_Distance_To_Roadways": (-287, 7666),
    "Hillshade_9am": (-4, 301),
    "Hillshade_Noon": (49, 279),
    "Hillshade_3pm": (-53, 272),
    "Horizontal_Distance_To_Fire_Points": (-277, 8075),
}
CLASSES = (1, 2, 3, 4, 6, 7)
SHARES = (0.367, 0.553, 0.049, 0.005, 0.01, 0.016)
ELEVATION = {1: 3150, 2: 2900, 3: 2450, 4: 2250, 5: 2750, 6: 2550, 7: 3400}


def twin(raw: TwinFolder) -> None:
    """Signal: each cover type grows around its own elevation; the other columns are noise."""
    rows = raw.count(500, least=100)
    raw.write_csv("train.csv", _patches(raw.rng, rows, first_id=0))

    later = _patches(raw.rng, raw.count(125), first_id=rows)
    del later["Cover_Type"]
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"Id": later["Id"], "Cover_Type": np.full(len(later["Id"]), 2)})


def _patches(rng: np.random.RandomState, count: int, first_id: int) -> dict[str, np.ndarray]:
    cover = rng.choice(CLASSES, count, p=SHARES)
    cover[rng.randint(count)] = 5  # a single patch, whatever the size
    height = np.array([ELEVATION.get(kind, 0) for kind in range(8)])[cover]
    return {
        "Id": np.arange(first_id, first_id + count),
        "Elevation": height + rng.randint(-130, 131, count),
        **{name: rng.randint(low, high + 1, count) for name, (low, high) in MEASURES.items()},
        # Not one-hot as in a survey: a patch may have two areas or soils, or none.
        **{f"Wilderness_Area{area}": _flags(rng, count, 0.25) for area in range(1, 5)},
        **{f"Soil_Type{soil}": _flags(rng, count, 0 if soil in (7, 15) else 0.025) for soil in range(1, 41)},
        "Cover_Type": cover,
    }


def _flags(rng: np.random.RandomState, count: int, share: float) -> np.ndarray:
    return (rng.rand(count) < share).astype(int)
