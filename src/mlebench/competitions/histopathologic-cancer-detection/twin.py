import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex

SIDE = 12  # the original has 96 pixels
CENTRE = slice(SIDE // 3, 2 * SIDE // 3)


def twin(raw: TwinFolder) -> None:
    """Signal: in a positive patch the middle third, in both directions, is darker and bluer."""
    ids, labels = _patches(raw, "train", raw.count(100, least=60))
    raw.write_csv("train_labels.csv", {"id": ids, "label": labels})

    later, _ = _patches(raw, "test", raw.count(26, least=16))
    raw.write_csv("sample_submission.csv", {"id": later, "label": [0] * len(later)})


def _patches(raw: TwinFolder, folder: str, count: int) -> tuple[list[str], np.ndarray]:
    ids = random_hex(raw.rng, count, digits=40)
    labels = (raw.rng.rand(count) < 0.4).astype(int)

    pixels = raw.rng.randint(150, 256, (count, SIDE, SIDE, 3)).astype(np.uint8)
    pixels[:, CENTRE, CENTRE, :2] -= (50 * labels).astype(np.uint8)[:, None, None, None]
    # Uncompressed TIFF: the bytes around the pixels are the same in every file of this size.
    before, after = image_bytes(pixels[0], "TIFF").split(pixels[0].tobytes())
    for id, patch in zip(ids, pixels, strict=True):
        raw.write(f"{folder}/{id}.tif", before + patch.tobytes() + after)
    return ids, labels
