import numpy as np

from mlebench.kit import encode_runs
from mlebench.kit.twins import TwinFolder, image_bytes

SLICES = 65


def twin(raw: TwinFolder) -> None:
    """Signal: where there is ink, the slices around the middle one are brighter than the papyrus is elsewhere."""
    scale = raw.size**0.5  # there are always five fragments, but they may be larger
    for name, width, height in (("1", 22, 26), ("2", 18, 30), ("3", 25, 17)):
        mask, ink = _fragment(raw, f"train/{name}", round(width * scale), round(height * scale))
        raw.write(f"train/{name}/inklabels.png", image_bytes(255 * ink, "PNG"))
        photograph = np.where(mask, 150 - 60 * ink, 20) + raw.rng.randint(0, 10, ink.shape)
        raw.write(f"train/{name}/ir.png", image_bytes(photograph, "PNG"))
        runs = " ".join(map(str, encode_runs(ink.T)))  # along the rows
        raw.write_csv(f"train/{name}/inklabels_rle.csv", {"Id": [name], "Predicted": [runs]})
    for name in ("a", "b"):
        _fragment(raw, f"test/{name}", round(16 * scale), round(11 * scale))
    raw.write_csv("sample_submission.csv", {"Id": ["a", "b"], "Predicted": ["1 1 5 1"] * 2})


def _fragment(raw: TwinFolder, folder: str, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """A scanned piece of papyrus: where it is in its pictures, and where it carries ink."""
    y, x = np.mgrid[:height, :width]
    mask = ((x / width - 0.5) / 0.49) ** 2 + ((y / height - 0.5) / 0.49) ** 2 < 1
    ink = np.zeros((height, width), dtype=bool)
    for _ in range(3):  # strokes
        column, row, stroke = raw.rng.randint(width // 2), raw.rng.randint(height // 4, height // 2), max(2, width // 8)
        ink[row : row + height // 4, column : column + stroke] = True
        ink[row : row + 2, column : column + width // 3] = True
    ink &= mask
    raw.write(f"{folder}/mask.png", image_bytes(255 * mask, "PNG"))
    for depth in range(SLICES):
        inside = max(0, 30 - abs(depth - SLICES // 2)) * 600
        glow = ink * (9000 if 28 <= depth <= 36 else 0)
        pixels = np.where(mask, 15000 + inside + glow, 4000) + raw.rng.randint(0, 4000, mask.shape)
        raw.write(f"{folder}/surface_volume/{depth:02d}.tif", image_bytes(pixels.astype(np.uint16), "TIFF"))
    return mask, ink
