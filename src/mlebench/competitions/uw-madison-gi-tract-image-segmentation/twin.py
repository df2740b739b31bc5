import numpy as np

from mlebench.kit import encode_runs
from mlebench.kit.twins import TwinFolder, image_bytes

ORGANS = ("large_bowel", "small_bowel", "stomach")
SIZES = ((12, 12), (10, 10), (14, 11))  # width, height; most pictures are square


def twin(raw: TwinFolder) -> None:
    """Signal: each organ has its own brightness, and all are brighter than the tissue around them."""
    table: dict[str, list] = {"id": [], "class": [], "segmentation": []}
    numbers = raw.rng.permutation(10 * raw.count(14, least=11))[: raw.count(14, least=11)]
    for place, number in enumerate(numbers.tolist()):
        # Every third case has more than four days, in no particular order, as in the file.
        days = raw.rng.permutation(40)[: 5 + place % 2 if place % 3 == 0 else raw.rng.randint(1, 4)].tolist()
        for day in days:
            _write_day(raw, table, f"case{number}", f"case{number}_day{day}", SIZES[place % 3])
    raw.write_csv("train.csv", table)
    raw.write_csv("sample_submission.csv", {"id": [], "class": [], "predicted": []})


def _write_day(raw: TwinFolder, table: dict[str, list], case: str, day: str, size: tuple[int, int]) -> None:
    """A day's scan: slices from one end of the abdomen to the other, the first of which show no organ."""
    width, height = size
    y, x = np.mgrid[:height, :width]
    centres = raw.rng.randint(3, min(size) - 3, (len(ORGANS), 2))
    for number in range(1, raw.rng.randint(3, 6)):
        pixels = 60 + raw.rng.randint(0, 12, (height, width))
        for place, organ in enumerate(ORGANS):
            at_y, at_x = centres[place] + raw.rng.randint(-1, 2, 2)
            radius = raw.rng.randint(0, 4) if number > 1 else 0
            mask = (x - at_x) ** 2 + (y - at_y) ** 2 < radius**2
            pixels[mask] = 140 + 50 * place
            table["id"].append(f"{day}_slice_{number:04d}")
            table["class"].append(organ)
            table["segmentation"].append(" ".join(map(str, encode_runs(mask.T))) or None)  # along the rows
        name = f"slice_{number:04d}_{width}_{height}_1.50_1.50.png"
        raw.write(f"train/{case}/{day}/scans/{name}", image_bytes((100 * pixels).astype(np.uint16), "PNG"))
