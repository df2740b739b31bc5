import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex

SHARES = [0.49, 0.1, 0.27, 0.06, 0.08]  # of the grades 0 to 4


def twin(raw: TwinFolder) -> None:
    """Signal: the worse the grade, the more bright and dark spots there are on the orange disc of the retina."""
    train = random_hex(raw.rng, raw.count(240, least=100), digits=12)
    later = random_hex(raw.rng, raw.count(40), digits=12)
    train[0] = "005331420735"  # one that could be a number
    grades, eye = [], np.zeros(0)
    for id in train:
        if not grades or raw.rng.rand() < 0.4:
            grades.append(int(raw.rng.choice(len(SHARES), p=SHARES)))
            eye = _retina(raw.rng, grades[-1])
        else:  # the same eye again, perhaps darker, and seldom with another grade
            grades.append(grades[-1] if raw.rng.rand() < 0.95 else int(raw.rng.choice(len(SHARES))))
        raw.write(f"train_images/{id}.png", image_bytes(eye * raw.rng.choice([0.9, 1]), "PNG"))
    raw.write_csv("train.csv", {"id_code": train, "diagnosis": grades})
    raw.write_csv("test.csv", {"id_code": later})
    raw.write_csv("sample_submission.csv", {"id_code": later, "diagnosis": [0] * len(later)})
    for id in later:
        raw.write(f"test_images/{id}.png", image_bytes(_retina(raw.rng, raw.rng.choice(len(SHARES), p=SHARES)), "PNG"))


def _retina(rng: np.random.RandomState, grade: int) -> np.ndarray:
    """A disc on black, no two lit alike; pictures vary in size and shape, as cameras do."""
    height, width = rng.choice([24, 28, 32]), rng.choice([32, 36, 48])
    rows, columns = np.ogrid[:height, :width]
    radius = 0.46 * height
    inside = np.square(rows - height / 2) + np.square(columns - width / 2) < radius**2
    light = rng.randint(-15, 16, (8, 9))[rows * 8 // height, columns * 9 // width]
    pixels = inside[:, :, None] * (np.array([200, 100, 40]) + rng.randint(-30, 31) + light[:, :, None])
    for _ in range(rng.poisson(4 * grade)):
        angle, distance = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.9) * radius
        row, column = int(height / 2 + distance * np.sin(angle)), int(width / 2 + distance * np.cos(angle))
        pixels[row, column] = [250, 230, 120] if rng.rand() < 0.5 else [110, 10, 10]
    return np.clip(pixels, 0, 255)
