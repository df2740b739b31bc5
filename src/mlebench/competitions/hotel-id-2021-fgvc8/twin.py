import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex, scenes_of_bursts, uneven_light

HEIGHT, WIDTH = 16, 18  # pixels; the original's photographs have up to some thousands
IN_BURSTS = 0.6  # the share of photographs
COMMON = (36363, 53586, 18807, 64314, 60181)
IN_TWO_ROWS = "ce27d36c9147cc19.jpg"
SECONDS = (1_430_000_000, 1_570_000_000)  # 2015 to 2019


def twin(raw: TwinFolder) -> None:
    """Signal: each hotel has rooms of its own colour; many photographs repeat the one before of that hotel."""
    hotels = np.unique([*COMMON, *raw.rng.randint(0, 68_000, raw.count(15))])
    chains = np.minimum(raw.rng.randint(0, 12, len(hotels)) ** 2, 91)  # numbers with gaps
    colours = raw.rng.randint(40, 216, (len(hotels), 3))

    count = raw.count(240, least=80)
    rooms = raw.rng.randint(len(hotels), size=count)
    images = _names(raw.rng, count)
    images[0] = images[1] = IN_TWO_ROWS
    rooms[1] = rooms[0]
    times = np.datetime64(0, "s") + raw.rng.randint(*SECONDS, count).astype("timedelta64[s]")
    stamps = np.char.replace(np.datetime_as_string(times), "T", " ")
    raw.write_csv(
        "train.csv", {"image": images, "chain": chains[rooms], "hotel_id": hotels[rooms], "timestamp": stamps}
    )
    views: dict[int, np.ndarray] = {}
    for image, room, view in zip(images, rooms, scenes_of_bursts(raw.rng, rooms, IN_BURSTS), strict=True):
        if view not in views:
            views[view] = _view(raw.rng, colours[room])
        raw.write(f"train_images/{chains[room]}/{image}", _photo(raw.rng, views[view]))

    later = _names(raw.rng, raw.count(5))
    for image in later:
        raw.write(f"test_images/{image}", _photo(raw.rng, _view(raw.rng, colours[raw.rng.randint(len(hotels))])))
    raw.write_csv("sample_submission.csv", {"image": later, "hotel_id": [" ".join(map(str, COMMON))] * len(later)})


def _names(rng: np.random.RandomState, count: int) -> list[str]:
    return [f"{name}.jpg" for name in random_hex(rng, count, digits=16)]


def _view(rng: np.random.RandomState, colour: np.ndarray) -> np.ndarray:
    return colour + rng.randint(-4, 5, (HEIGHT, WIDTH, 3)) + uneven_light(rng, HEIGHT, WIDTH)


def _photo(rng: np.random.RandomState, view: np.ndarray) -> bytes:
    return image_bytes(view + rng.randint(-3, 4), "JPEG")
