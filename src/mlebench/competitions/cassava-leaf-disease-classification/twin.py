import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, json_bytes, tfrecord_bytes

DISEASES = {
    "0": "Cassava Bacterial Blight (CBB)",
    "1": "Cassava Brown Streak Disease (CBSD)",
    "2": "Cassava Green Mottle (CGM)",
    "3": "Cassava Mosaic Disease (CMD)",
    "4": "Healthy",
}
SHARES = (0.05, 0.1, 0.11, 0.62, 0.12)
SPOTS = np.array([(90, 60, 30), (150, 110, 30), (120, 190, 60), (215, 215, 90), (70, 130, 60)])  # colours
TFRECORD_FILES = 16
HEIGHT, WIDTH = 24, 32  # pixels; the original has 600 × 800


def twin(raw: TwinFolder) -> None:
    """Signal: each disease has spots of its own colour on the green leaf; a healthy leaf has none."""
    size = raw.count(16, least=6)  # of a file of TFRecords
    count = TFRECORD_FILES * size - 2  # the last one is smaller, as in the original
    numbers = raw.rng.choice(50 * count, count, replace=False) * 1_000 + 6_103
    ids = sorted(f"{number}.jpg" for number in numbers.tolist())
    labels = raw.rng.choice(len(SHARES), count, p=SHARES)
    images = [_leaf(raw.rng, label) for label in labels]
    raw.write_csv("train.csv", {"image_id": ids, "label": labels})
    for id, image in zip(ids, images, strict=True):
        raw.write(f"train_images/{id}", image)

    order = raw.rng.permutation(count).tolist()
    for number in range(TFRECORD_FILES):
        rows = order[number * size : (number + 1) * size]
        records = [{"image": images[row], "image_name": ids[row].encode(), "target": int(labels[row])} for row in rows]
        raw.write(f"train_tfrecords/ld_train{number:02d}-{len(rows)}.tfrec", tfrecord_bytes(records))

    later, image = "2216849948.jpg", _leaf(raw.rng, 4)  # no more than one, as in the original
    raw.write(f"test_images/{later}", image)
    raw.write("test_tfrecords/ld_test00-1.tfrec", tfrecord_bytes([{"image": image, "image_name": later.encode()}]))
    raw.write_csv("sample_submission.csv", {"image_id": [later], "label": [4]})
    raw.write("label_num_to_disease_map.json", json_bytes(DISEASES))


def _leaf(rng: np.random.RandomState, label: int) -> bytes:
    pixels = SPOTS[-1] + rng.randint(-15, 16) + rng.randint(-10, 11, (HEIGHT, WIDTH, 3))
    spots = rng.randint(4, 9)
    for top, left in zip(rng.randint(0, HEIGHT - 5, spots), rng.randint(0, WIDTH - 5, spots), strict=True):
        pixels[top : top + 5, left : left + 5] = SPOTS[label] + rng.randint(-12, 13, (5, 5, 3))
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
