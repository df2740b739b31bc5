import numpy as np

from mlebench.kit import encode_runs
from mlebench.kit.twins import TwinFolder, csv_bytes, hex_ids, image_bytes, zip_bytes

SIDE = 101


def twin(raw: TwinFolder) -> None:
    """Signal: salt is smooth and bright, the rock around it has dark layers."""
    count, later_count = raw.count(60, least=20), raw.count(10)
    ids = hex_ids(raw.rng, count + later_count, 10)
    train, later = ids[:count], ids[count:]
    masks = [_salt(raw.rng, place) for place in range(count)]
    images = {f"images/{id}.png": _image(raw.rng, mask) for id, mask in zip(train, masks, strict=True)}
    drawn = {
        f"masks/{id}.png": image_bytes((65535 * mask).astype(np.uint16), "PNG")
        for id, mask in zip(train, masks, strict=True)
    }
    later_images = {f"images/{id}.png": _image(raw.rng, _salt(raw.rng, place)) for place, id in enumerate(later)}
    encodings = [" ".join(map(str, encode_runs(mask))) for mask in masks]

    table = csv_bytes({"id": train, "rle_mask": encodings})
    sample = csv_bytes({"id": later, "rle_mask": ["1 1"] * later_count})
    order = raw.rng.permutation(count + later_count)
    depths = csv_bytes({"id": [ids[place] for place in order], "z": raw.rng.randint(50, 960, len(ids))})
    inside = {"train.csv": table, "sample_submission.csv": sample, "depths.csv": depths}
    inside |= {f"train/{name}": content for name, content in (images | drawn).items()}
    inside |= {f"test/{name}": content for name, content in later_images.items()}
    raw.write_zip("competition_data.zip", {f"competition_data/{name}": content for name, content in inside.items()})
    raw.write_zip("train.zip", images | drawn)
    raw.write_zip("test.zip", later_images)
    raw.write("flamingo.zip", zip_bytes({"flamingo/README.txt": b"a forum prize\n"}))
    raw.write("train.csv", table)
    raw.write("sample_submission.csv", sample)
    raw.write("depths.csv", depths)


def _salt(rng: np.random.RandomState, place: int) -> np.ndarray:
    """Nothing in two images of five, all or nearly all of the image in one of ten, otherwise what is below a line."""
    y, x = np.mgrid[:SIDE, :SIDE]
    kind = (7 * place + rng.randint(2)) % 10
    if kind < 4:
        return np.zeros((SIDE, SIDE), dtype=bool)
    if kind == 4:
        return y >= rng.randint(0, 3)
    slope = rng.randint(-60, 61) / 100
    return y > rng.randint(10, 90) + slope * (x - SIDE / 2)


def _image(rng: np.random.RandomState, salt: np.ndarray) -> bytes:
    """Layers of rock, salt that hides them, and some grain."""
    layers = 70 + 50 * (np.arange(SIDE) // rng.randint(5, 9) % 2)
    pixels = np.where(salt, 190, layers[:, None]) + 4 * rng.randint(0, 2, (SIDE, SIDE))
    return image_bytes(np.repeat(pixels[:, :, None], 3, axis=2), "PNG")
