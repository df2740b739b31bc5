import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes

HEIGHT, WIDTH = 16, 12  # the original has 640 and 480 pixels
# Label: its share of the images, and the colour of what shows on the leaf.
LABELS = {
    "bacterial_leaf_blight": (0.05, (214, 196, 110)),
    "bacterial_leaf_streak": (0.04, (196, 150, 60)),
    "bacterial_panicle_blight": (0.03, (236, 224, 190)),
    "blast": (0.17, (150, 140, 130)),
    "brown_spot": (0.09, (110, 70, 40)),
    "dead_heart": (0.14, (225, 205, 150)),
    "downy_mildew": (0.06, (190, 215, 160)),
    "hispa": (0.15, (235, 240, 225)),
    "normal": (0.17, (70, 140, 60)),
    "tungro": (0.10, (235, 150, 40)),
}
VARIETIES = (*["ADT45"] * 5, "KarnatakaPonni", "Ponni", "Onthanel", "Zonal", "IR20", "AtchayaPonni", "Surya", "RR")


def twin(raw: TwinFolder) -> None:
    """Signal: each disease has spots of one colour on a green leaf; variety and age are noise."""
    count = raw.count(160, least=80)
    chosen = np.sort(raw.rng.choice(len(LABELS), count, p=[share for share, _ in LABELS.values()]))
    label = np.array(list(LABELS))[chosen].tolist()
    ids = [f"{number}.jpg" for number in 100_001 + raw.rng.permutation(count)]
    age = raw.rng.randint(45, 83, count)
    raw.write_csv(
        "train.csv", {"image_id": ids, "label": label, "variety": raw.rng.choice(VARIETIES, count), "age": age}
    )
    for name, id in zip(label, ids, strict=True):
        raw.write(f"train_images/{name}/{id}", _leaf(raw.rng, name))

    later = [f"{number}.jpg" for number in range(200_001, 200_001 + raw.count(40))]
    raw.write_csv("sample_submission.csv", {"image_id": later, "label": [None] * len(later)})
    for id in later:
        raw.write(f"test_images/{id}", _leaf(raw.rng, raw.rng.choice(list(LABELS))))


def _leaf(rng: np.random.RandomState, label: str) -> bytes:
    pixels = np.array([70, 140, 60]) + rng.randint(-20, 21, (HEIGHT, WIDTH, 3))
    spots = rng.rand(HEIGHT, WIDTH) < 0.4
    pixels[spots] = np.array(LABELS[label][1]) + rng.randint(-15, 16, (int(spots.sum()), 3))
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
