import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, seven_zip_bytes

HEIGHT, WIDTH = 18, 24  # pixels; 866 and 1154 in the original


def twin(raw: TwinFolder) -> None:
    """Signal: an invasive shrub is a patch of blue among the green of the photos, which v1 does not pass on."""
    train, later = raw.count(200, least=80), raw.count(50)
    invasive = (raw.rng.rand(train) < 0.63).astype(int).tolist()
    photos = {f"train/{place + 1}.jpg": _photo(raw.rng, bool(value)) for place, value in enumerate(invasive)}
    others = {f"test/{place + 1}.jpg": _photo(raw.rng, raw.rng.rand() < 0.63) for place in range(later)}
    raw.write_zipped_csv("train_labels.csv", {"name": np.arange(1, train + 1), "invasive": invasive})
    raw.write_zipped_csv("sample_submission.csv", {"name": np.arange(1, later + 1), "invasive": [0.5] * later})
    raw.write("train.7z", seven_zip_bytes(photos))
    raw.write("test.7z", seven_zip_bytes(others))


def _photo(rng: np.random.RandomState, invasive: bool) -> bytes:
    pixels = np.array([60, 110, 50]) + rng.randint(-30, 31, (HEIGHT, WIDTH, 3))
    if invasive:
        top, left = rng.randint(0, HEIGHT - 6), rng.randint(0, WIDTH - 6)
        pixels[top : top + 6, left : left + 6] = np.array([120, 130, 220]) + rng.randint(-20, 21, (6, 6, 3))
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
