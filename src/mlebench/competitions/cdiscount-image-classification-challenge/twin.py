from typing import Any

import numpy as np

from mlebench.kit.twins import TwinFolder, bson_bytes, image_bytes

SIDE = 16  # the original has 180 pixels
MOST_CATEGORIES = 5270  # as in the original
PICTURES = 6  # different ones of each category; the original's are all different
SAMPLE = 1000010653
SHELVES = (
    ("TELEPHONIE - GPS", "ACCESSOIRE TELEPHONE", "COQUE TELEPHONE - BUMPER"),
    ("EPICERIE", "THÉ, INFUSION", 'THE "VRAC"'),
    ("AUTO - MOTO (NEUF)", "PNEUS", "PNEUS AUTO"),
    ("BIJOUX -  LUNETTES - MONTRES", "MONTRE", "MONTRE D'ENFANT"),
    ("DECO - LINGE - LUMINAIRE", "OBJET DÉCORATIF", "NA"),
)


def twin(raw: TwinFolder) -> None:
    """Signal: the products of a category have pictures of one colour, a little lighter or darker."""
    categories = _categories(raw.rng, min(raw.count(12, least=8), MOST_CATEGORIES))
    shelves = np.array(SHELVES)[raw.rng.randint(len(SHELVES), size=len(categories))]
    levels = {f"category_level{place + 1}": names for place, names in enumerate(shelves.T)}
    raw.write_csv("category_names.csv", {"category_id": categories, **levels})

    known, later = raw.count(240, least=130), raw.count(40, least=20)
    ids = np.cumsum(raw.rng.choice([1, 1, 2, 3], known + later))
    is_later = np.zeros(known + later, dtype=bool)
    is_later[raw.rng.permutation(known + later)[:later]] = True
    products = _products(raw.rng, ids, categories)

    train = [product for product, without in zip(products, is_later, strict=True) if not without]
    test = [{"_id": product["_id"], "imgs": product["imgs"]} for product in np.array(products)[is_later]]
    raw.write("train.bson", bson_bytes(train))
    raw.write("train_example.bson", bson_bytes(train[:100]))
    raw.write("test.bson", bson_bytes(test))
    raw.write_csv("sample_submission.csv", {"_id": ids[is_later], "category_id": [SAMPLE] * later})


def _categories(rng: np.random.RandomState, count: int) -> np.ndarray:
    """The category of the sample submission and others; later ones are rarer."""
    numbers = 1000000235 + np.cumsum(rng.randint(1, 8, count))
    numbers[0] = SAMPLE if SAMPLE not in numbers else numbers[0]
    return numbers


def _products(rng: np.random.RandomState, ids: np.ndarray, categories: np.ndarray) -> list[dict[str, Any]]:
    pictures = _pictures(rng, len(categories))
    share = 1 / (1 + np.arange(len(categories)))
    category = rng.choice(len(categories), len(ids), p=share / share.sum())
    count = rng.choice([1, 2, 3, 4], len(ids), p=[0.7, 0.15, 0.05, 0.1])
    chosen = rng.randint(PICTURES, size=(len(ids), 4))
    return [
        {"_id": id, "imgs": [{"picture": pictures[kind][one]} for one in which[:some]], "category_id": number}
        for id, kind, number, some, which in zip(
            *(values.tolist() for values in (ids, category, categories[category], count, chosen)), strict=True
        )
    ]


def _pictures(rng: np.random.RandomState, categories: int) -> list[list[bytes]]:
    """Pictures of one colour each, so that a JPEG encoder has nothing to decide."""
    colours = rng.randint(30, 226, (categories, 1, 3)) + rng.randint(-25, 26, (categories, PICTURES, 1))
    return [
        [image_bytes(np.broadcast_to(colour, (SIDE, SIDE, 3)), "JPEG") for colour in of_category]
        for of_category in colours
    ]
