import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes

WIDTH, HEIGHTS = 24, (11, 18)  # the original has pages of 540 by 258 or 420 pixels
FONTS = 4  # rows of letters by their slant
COPIES = 4  # pages with one text, each with stains of its own


def twin(raw: TwinFolder) -> None:
    """Signal: letters are darker than stains, so what is darker than mid-grey stays and the rest becomes white."""
    pages = raw.count(30, least=12)
    later = raw.count(6)
    numbers = np.cumsum(raw.rng.randint(1, 4, pages + later))  # with gaps
    mixed = raw.rng.permutation(numbers)
    texts = [_text(raw.rng) for _ in range(pages // COPIES + 1)]
    printed = {number: _shifted(raw.rng, texts[index // COPIES]) for index, number in enumerate(mixed[:pages])}
    dirty = {number: _soiled(raw.rng, page) for number, page in printed.items()}
    for folder, images in (("train", dirty), ("train_cleaned", printed)):
        files = {f"{folder}/{number}.png": image_bytes(pixels, "PNG") for number, pixels in images.items()}
        raw.write_zip(f"{folder}.zip", files)

    test = {number: _soiled(raw.rng, _text(raw.rng)) for number in sorted(mixed[pages:])}
    raw.write_zip("test.zip", {f"test/{number}.png": image_bytes(pixels, "PNG") for number, pixels in test.items()})
    ids = [id for number, pixels in test.items() for id in _pixel_ids(number, pixels)]
    raw.write_zipped_csv("sampleSubmission.csv", {"id": ids, "value": [1] * len(ids)})


def _text(rng: np.random.RandomState) -> np.ndarray:
    """Lines of letters on white."""
    height = rng.choice(HEIGHTS)
    clean = np.full((height, WIDTH), 255)
    slant = rng.randint(FONTS)
    for line in range(2, height - 3, 4):
        letters = rng.rand(WIDTH - 4) < 0.45
        for row in range(3):
            shade = rng.randint(0, 90, WIDTH - 4)
            clean[line + row, 2:-2] = np.where(np.roll(letters, row * slant), shade, clean[line + row, 2:-2])
    return clean


def _shifted(rng: np.random.RandomState, page: np.ndarray) -> np.ndarray:
    """The same within its white margin, a little to the left or right."""
    return np.roll(page, rng.randint(-1, 2), axis=1)


def _soiled(rng: np.random.RandomState, clean: np.ndarray) -> np.ndarray:
    """The same with a stain and a crease on it."""
    height = len(clean)
    rows, columns = np.mgrid[:height, :WIDTH]
    away = np.hypot(rows - rng.randint(height), columns - rng.randint(WIDTH))
    grey = 235 - 60 * (np.abs(away - rng.randint(3, 9)) < 1.5) - 40 * (columns == rng.randint(WIDTH))
    return np.minimum(clean, grey - rng.randint(0, 20, clean.shape))


def _pixel_ids(number: int, pixels: np.ndarray) -> list[str]:
    height, width = pixels.shape
    return [f"{number}_{row}_{column}" for row in range(1, height + 1) for column in range(1, width + 1)]
