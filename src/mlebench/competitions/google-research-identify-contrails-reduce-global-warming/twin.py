import numpy as np

from mlebench.kit.twins import TwinFolder, json_bytes, npy_bytes, rounded

HEIGHT, WIDTH, FRAMES, LABELLED = 8, 10, 8, 4


def twin(raw: TwinFolder) -> None:
    """Signal: in the labelled frame a contrail is a slanted line where bands 11 and 15 differ less than elsewhere."""
    counts = {"train": raw.count(24, least=16), "validation": raw.count(6, least=5), "test": raw.count(2)}
    numbers = raw.rng.permutation(10 * sum(counts.values())).tolist()
    ids = {
        folder: [str(1000216489776414077 + 7_000_000_000_037 * numbers.pop()) for _ in range(count)]
        for folder, count in counts.items()
    }
    for folder, own in ids.items():
        for id in own:
            _write_record(raw, folder, id)
    for folder in ("train", "validation"):
        raw.write(f"{folder}_metadata.json", json_bytes([_metadata(raw.rng, id) for id in ids[folder]]))
    sample = {"record_id": ids["test"], "encoded_pixels": ["1 3 10 5"] * len(ids["test"])}
    raw.write_csv("sample_submission.csv", sample)


def _write_record(raw: TwinFolder, folder: str, id: str) -> None:
    rng = raw.rng
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    line = np.abs(y - x * rng.choice([0.5, 1, -1]) - rng.randint(-2, 6)) < 0.8
    contrail = line & (rng.rand() < 0.7)  # the rest of the images show none
    for band in range(8, 17):
        kelvin = 270 + 2 * band + rng.randint(0, 300, (HEIGHT, WIDTH, FRAMES)) / 100
        kelvin[..., LABELLED] -= contrail * (6 if band == 15 else 14 if band == 11 else 3)
        raw.write(f"{folder}/{id}/band_{band:02d}.npy", npy_bytes(rounded(kelvin).astype(np.float32)))
    if folder == "train":
        labellers = [contrail & (rng.rand(HEIGHT, WIDTH) < 0.9) for _ in range(4)]
        individual = np.stack(labellers, axis=-1)[:, :, None].astype(np.int32)
        raw.write(f"{folder}/{id}/human_individual_masks.npy", npy_bytes(individual))
    if folder != "test":
        raw.write(f"{folder}/{id}/human_pixel_masks.npy", npy_bytes(contrail[..., None].astype(np.int32)))


def _metadata(rng: np.random.RandomState, id: str) -> dict:
    """Where and when; coordinates have as many digits as a double."""
    row, column = (rng.randint(-10_000_000, 10_000_000) / 7 for _ in range(2))
    return {
        "record_id": id,
        "row_min": row,
        "row_size": 1001.6842857142857,
        "col_min": column,
        "col_size": 1001.6842857142857,
        "timestamp": float(1556000000 + rng.randint(10**7)),
        "projection_wkt": 'PROJCS["unnamed",GEOGCS["WGS 84",DATUM["unknown"]],PROJECTION["Geostationary_Satellite"]]',
    }
