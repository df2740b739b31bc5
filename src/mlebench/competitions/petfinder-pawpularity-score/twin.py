import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex

# How often each property of a photo is noted.
PROPERTIES = {
    "Subject Focus": 0.03,
    "Eyes": 0.77,
    "Face": 0.9,
    "Near": 0.86,
    "Action": 0.01,
    "Accessory": 0.07,
    "Group": 0.13,
    "Collage": 0.05,
    "Human": 0.17,
    "Occlusion": 0.17,
    "Info": 0.06,
    "Blur": 0.07,
}
SHAPES = ((24, 32), (32, 24), (24, 24))  # height and width


def twin(raw: TwinFolder) -> None:
    """Signal: the brighter the animal in the middle of the photo, the more popular it is; 100 is a separate peak."""
    train, later = _photos(raw, "train", raw.count(200, least=50)), _photos(raw, "test", 8)
    raw.write_csv("train.csv", train)
    raw.write_csv("test.csv", {name: cells for name, cells in later.items() if name != "Pawpularity"})
    guesses = [f"{guess:.2f}" for guess in raw.rng.uniform(1, 100, len(later["Id"]))]
    raw.write_csv("sample_submission.csv", {"Id": later["Id"], "Pawpularity": guesses})


def _photos(raw: TwinFolder, folder: str, count: int) -> dict[str, np.ndarray]:
    ids = np.array(sorted(random_hex(raw.rng, count, digits=32)), dtype=object)
    popularity = np.clip(raw.rng.gamma(4, 9, count), 1, 100).astype(int)
    popularity[raw.rng.rand(count) < 0.03] = 100
    animal = np.arange(count)
    for copy in np.flatnonzero(raw.rng.rand(count) < 0.5)[1:].tolist():  # an animal again, with nearly its popularity
        animal[copy] = animal[raw.rng.randint(copy)]
        popularity[copy] = np.clip(popularity[animal[copy]] + raw.rng.randint(-3, 4), 1, 100)
    brightness = popularity[animal] + raw.rng.normal(0, 15, count)[animal]
    photos: dict[int, bytes] = {}
    for id, which, light in zip(ids, animal.tolist(), brightness, strict=True):
        if which not in photos:
            photos[which] = _photo(raw.rng, light)
        raw.write(f"{folder}/{id}.jpg", photos[which])
    flags = {name: (raw.rng.rand(count) < share).astype(int) for name, share in PROPERTIES.items()}
    return {"Id": ids, **flags, "Pawpularity": popularity}


def _photo(rng: np.random.RandomState, light: float) -> bytes:
    """Something bright before a background of patches, which is different in every photo."""
    height, width = SHAPES[rng.randint(len(SHAPES))]
    rows, columns = np.ogrid[:height, :width]
    pixels = rng.randint(40, 200, 3) + rng.randint(-40, 41, (8, 9, 3))[rows * 8 // height, columns * 9 // width]
    pixels[6:-6, 6:-6] = 60 + 1.5 * light + rng.randint(-20, 21, 3)
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
