"""Answers and a submission of a competition's real number of rows, for `grade.py`; run by ours.

    python benchmarks/full_size.py TWINS DATA ID

The rows of the default twin in the folder TWINS are repeated under new ids. The submission is the truth with noise: a
mixture with the sample submission where that is valid, otherwise with the targets of 30 % of the rows moved. Its rows
are shuffled unless their order counts. Where cells of a twin are much smaller than real ones, they are made here.
Images and everything else that no grader reads are left out. Prints the path of the submission.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlebench.contract.case import INVALID, CompetitionCase
from mlebench.registry import Competition, Registry

# Rows of a submission, from the published sizes of the data and the split. Where the split depends on something that
# was not available (places, molecules, days), it is an estimate.
ROWS = {
    "3d-object-detection-for-autonomous-vehicles": 4_500,
    "AI4Code": 20_000,
    "aerial-cactus-identification": 3_325,
    "alaska2-image-steganalysis": 5_000,
    "aptos2019-blindness-detection": 367,
    "billion-word-imputation": 303_000,
    "bms-molecular-translation": 484_838,
    "cassava-leaf-disease-classification": 2_676,
    "cdiscount-image-classification-challenge": 706_990,
    "chaii-hindi-and-tamil-question-answering": 112,
    "champs-scalar-coupling": 466_000,
    "denoising-dirty-documents": 5_800_000,
    "detecting-insults-in-social-commentary": 2_647,
    "dog-breed-identification": 1_023,
    "dogs-vs-cats-redux-kernels-edition": 2_500,
    "facebook-recruiting-iii-keyword-extraction": 603_420,
    "freesound-audio-tagging-2019": 3_361,
    "google-quest-challenge": 608,
    "google-research-identify-contrails-reduce-global-warming": 1_856,
    "h-and-m-personalized-fashion-recommendations": 1_371_980,
    "herbarium-2020-fgvc7": 210_000,
    "herbarium-2021-fgvc8": 460_000,
    "herbarium-2022-fgvc9": 175_000,
    "histopathologic-cancer-detection": 45_561,
    "hms-harmful-brain-activity-classification": 10_700,
    "hotel-id-2021-fgvc8": 9_756,
    "hubmap-kidney-segmentation": 3,
    "icecube-neutrinos-in-deep-ice": 13_200_000,
    "imet-2020-fgvc7": 21_318,
    "inaturalist-2019-fgvc6": 32_000,
    "invasive-species-monitoring": 459,
    "iwildcam-2019-fgvc6": 19_600,
    "iwildcam-2020-fgvc7": 48_800,
    "jigsaw-toxic-comment-classification-challenge": 153_164,
    "jigsaw-unintended-bias-in-toxicity-classification": 97_320,
    "kuzushiji-recognition": 389,
    "leaf-classification": 99,
    "learning-agency-lab-automated-essay-scoring-2": 1_731,
    "lmsys-chatbot-arena": 5_748,
    "ml2021spring-hw2": 330_295,
    "mlsp-2013-birds": 1_216,
    "movie-review-sentiment-analysis-kernels-only": 46_818,
    "multi-modal-gesture-recognition": 95,
    "new-york-city-taxi-fare-prediction": 9_914,
    "nfl-player-contact-detection": 472_000,
    "nomad2018-predict-transparent-conductors": 240,
    "osic-pulmonary-fibrosis-progression": 2_628,
    "paddy-disease-classification": 2_602,
    "petfinder-pawpularity-score": 992,
    "plant-pathology-2020-fgvc7": 183,
    "plant-pathology-2021-fgvc8": 3_727,
    "plant-seedlings-classification": 665,
    "playground-series-s3e18": 1_484,
    "predict-volcanic-eruptions-ingv-oe": 444,
    "random-acts-of-pizza": 1_162,
    "ranzcr-clip-catheter-line-classification": 3_009,
    "rsna-2022-cervical-spine-fracture-detection": 14_536,
    "rsna-breast-cancer-detection": 2_384,
    "rsna-miccai-brain-tumor-radiogenomic-classification": 59,
    "seti-breakthrough-listen": 6_000,
    "siim-covid19-detection": 1_240,
    "siim-isic-melanoma-classification": 4_142,
    "smartphone-decimeter-2022": 37_000,
    "spaceship-titanic": 870,
    "spooky-author-identification": 1_958,
    "stanford-covid-vaccine": 25_680,
    "statoil-iceberg-classifier-challenge": 321,
    "tabular-playground-series-dec-2021": 400_000,
    "tabular-playground-series-may-2022": 100_000,
    "tensorflow-speech-recognition-challenge": 6_473,
    "tensorflow2-question-answering": 61_476,
    "text-normalization-challenge-english-language": 992_000,
    "text-normalization-challenge-russian-language": 1_057_000,
    "tgs-salt-identification-challenge": 1_000,
    "the-icml-2013-whale-challenge-right-whale-redux": 25_000,
    "tweet-sentiment-extraction": 2_749,
    "us-patent-phrase-to-phrase-matching": 3_648,
    "uw-madison-gi-tract-image-segmentation": 17_280,
    "ventilator-pressure-prediction": 603_600,
    "vesuvius-challenge-ink-detection": 1,
    "vinbigdata-chest-xray-abnormalities-detection": 1_500,
    "whale-categorization-playground": 2_610,
}
TRUE_ROWS = {"h-and-m-personalized-fashion-recommendations": 75_000}  # answers of only some of the rows
LONG_TEXT = ("Title", "Body")  # of facebook-recruiting: the sample submission has them, others need not
SLICES, ORGANS = 144, 3  # of a day, of a slice in uw-madison-gi-tract-image-segmentation
PAGE = 45_000  # characters of an article in tensorflow2-question-answering
Pair = tuple[list[str], list[str]]  # true and predicted cells


def main() -> None:
    twins, data, id = sys.argv[1:]
    twin, full = (Registry(folder).get_competition(id) for folder in (twins, data))
    for path in (full.answers, full.sample_submission):
        path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    submission = (_questions if full.answers.suffix == ".jsonl" else _repeated)(twin, full, rng)
    path = Path(data) / "submission.csv"
    submission.to_csv(path, index=False)
    full.sample_submission.touch()  # it must exist, but is not read
    print(json.dumps({"submission": str(path), "rows": len(submission)}))


def _repeated(twin: Competition, full: Competition, rng: np.random.Generator) -> pd.DataFrame:
    """Write the answers; return the submission."""
    facts = twin.submission
    keys = [facts["id"], *filter(None, [facts.get("groups", {}).get("column")])]
    tables = [_read(path) for path in (twin.answers, twin.gold_submission, twin.sample_submission)]
    copies = -(-ROWS[twin.id] // len(tables[2]))
    answers, gold, sample = (_repeat(table, keys, copies) for table in tables)
    answers = answers.head(TRUE_ROWS.get(twin.id, len(answers)))
    targets, truth = facts["targets"], facts.get("truth", facts["targets"])
    if not set(targets) <= set(gold):
        gold = gold.rename(columns=dict(zip(truth, targets, strict=False)))
    if len(gold) < len(sample):
        gold = pd.concat([gold, sample[~sample[facts["id"]].isin(gold[facts["id"]])]])
    else:  # gaps in the truth are rows that are not scored
        gold = gold.assign(**{name: gold[name].where(gold[name] != "", sample[name]) for name in targets})
    kind = _kind_of_noise(twin)
    submission = pd.DataFrame({name: gold[name] for name in sample if name in gold and name not in LONG_TEXT})
    submission = _blended(submission, sample, targets, rng) if "blend" in kind else _moved(submission, targets, rng)
    if twin.id in CELLS:
        answers, submission = _with_cells(twin, answers, submission, rng)
    answers.to_csv(full.answers, index=False)
    return submission.sample(frac=1, random_state=0) if "shuffled" in kind else submission


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _repeat(table: pd.DataFrame, keys: list[str], copies: int) -> pd.DataFrame:
    repeated = pd.concat([table] * copies, ignore_index=True)
    copy = np.repeat(np.arange(copies), len(table))
    for name in set(keys) & set(table):
        texts: list[str] = table[name].to_list()
        if all(text.isdecimal() for text in texts):
            numbers = np.array(list(map(int, texts)))
            # Multiplying a number of more than 18 digits would overflow 64 bits.
            step = int(numbers.max()) + 1 if max(map(len, texts)) <= 18 else 1
            repeated[name] = np.tile(numbers, copies) + copy * step
        else:
            width = len(f"{copies:x}")
            repeated[name] = [f"{number:0{width}x}{text}" for number in range(copies) for text in texts]
        if len(set(repeated[name])) != copies * len(set(texts)):
            raise ValueError(f"new values of {name} are not unique")
    return repeated


def _kind_of_noise(twin: Competition) -> str:
    """The first kind that the grader accepts on the twin, or else moved targets in the twin's order."""
    case = CompetitionCase(twin)
    shuffled = () if case.config.order_counts else ("blend, shuffled", "noisy, shuffled")
    accepted = (kind for kind in (*shuffled, "blend") if case.verdicts.get(kind) not in (None, INVALID, "nan"))
    return next(accepted, "noisy")


def _blended(gold: pd.DataFrame, sample: pd.DataFrame, targets: list[str], rng: np.random.Generator) -> pd.DataFrame:
    weight = rng.random((len(gold), 1)).round(3)
    truth, guess = (side[targets].to_numpy(dtype=float) for side in (gold, sample))
    return gold.assign(**dict(zip(targets, (weight * truth + (1 - weight) * guess).round(9).T, strict=True)))


def _moved(gold: pd.DataFrame, targets: list[str], rng: np.random.Generator) -> pd.DataFrame:
    source = np.arange(len(gold))
    some = np.flatnonzero(rng.random(len(gold)) < 0.3)
    source[some] = rng.permutation(some)
    return gold.assign(**{name: gold[name].to_numpy()[source] for name in targets})


# Cells as large and as varied as in the real data.


def _with_cells(
    twin: Competition, answers: pd.DataFrame, submission: pd.DataFrame, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    make, constants = CELLS[twin.id]
    (target,), truth = twin.submission["targets"], twin.submission.get("truth", twin.submission["targets"])
    true, predicted = make(rng, len(submission))
    true = true[: len(answers)]
    if make is _scans:
        answers, submission = (table.assign(id=_slices(len(answers))) for table in (answers, submission))
    return answers.assign(**{truth[0]: true}, **constants), submission.assign(**{target: predicted})


def _classes(rng: np.random.Generator, rows: int, *, count: int, guesses: int = 1, form: str = "{}") -> Pair:
    names = [form.format(number) for number in range(count)]
    true, drawn = rng.integers(count, size=rows), rng.integers(count, size=(rows, guesses))
    drawn[:, 0] = np.where(rng.random(rows) < 0.7, true, drawn[:, 0])
    predicted = [" ".join([names[number] for number in line.tolist()]) for line in rng.permuted(drawn, axis=1)]
    return [names[number] for number in true], predicted


def _tags(rng: np.random.Generator, rows: int, *, count: int, each: int) -> Pair:
    numbers = np.minimum(rng.zipf(1.3, (rows, each + 1)), count)
    true, predicted = (
        [" ".join(f"tag{number}" for number in dict.fromkeys(line)) for line in side.tolist()]
        for side in (numbers[:, :-1], numbers[:, 1:])
    )
    return true, predicted


def _letters(rng: np.random.Generator, rows: int, *, length: int, alphabet: str, start: str = "") -> Pair:
    texts = rng.choice(list(alphabet), (rows, length))
    true = [start + "".join(line) for line in texts.tolist()]
    cut = rng.integers(len(start), length, rows).tolist()
    return true, [text[:place] + text[place + 9 :] for text, place in zip(true, cut, strict=True)]


def _cell_orders(rng: np.random.Generator, rows: int) -> Pair:
    names = [f"{number:08x}" for number in rng.permutation(60) * 70_000_001]
    orders = [rng.permutation(names)[: rng.integers(20, 60)] for _ in range(rows)]
    guesses = [order[np.argsort(np.arange(len(order)) + rng.normal(0, 5, len(order)))] for order in orders]
    return list(map(" ".join, orders)), list(map(" ".join, guesses))


def _boxes_of_cars(rng: np.random.Generator, rows: int, *, each: int = 28) -> Pair:
    def text(boxes: np.ndarray, names: list[str]) -> str:
        return " ".join(f"{' '.join(map(str, box))} {name}" for box, name in zip(boxes.tolist(), names, strict=True))

    cells: Pair = [], []
    for _ in range(rows):
        places = rng.uniform([1, 1000, 1000, -25, 1.5, 4, 1.4, -3], [1, 1100, 1100, -20, 2.2, 6, 1.9, 3], (each, 8))
        names = rng.choice(["car", "car", "car", "pedestrian", "truck"], each).tolist()
        noise = rng.normal(0, [0, 0.3, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1], (each, 8))
        noise[:, 0] = -rng.random(each)
        cells[0].append(text(places.round(6), names))
        cells[1].append(text((places + noise).round(6), names))
    return cells


def _characters(rng: np.random.Generator, rows: int, *, each: int = 176) -> Pair:
    cells: Pair = [], []
    for _ in range(rows):
        page = [(f"U+{0x3040 + rng.integers(300):04X}", *rng.integers([0, 0], [2000, 3000])) for _ in range(each)]
        cells[0].append(" ".join(f"{label} {x} {y} 60 70" for label, x, y in page))
        cells[1].append(" ".join(f"{label} {x + rng.integers(80)} {y + 35}" for label, x, y in page))
    return cells


def _masks(
    rng: np.random.Generator,
    rows: int,
    *,
    height: int,
    width: int,
    across: int = 1,
    empty: str = "",
    share: float = 0.6,
) -> Pair:
    """Discs, `across` times `across` of them; in the prediction, all are a little to the right."""
    cells: Pair = [], []
    for _ in range(rows):
        size = min(height, width) // across
        radius = int(rng.integers(size // 5, size // 3)) if rng.random() < share else 0
        for side, shift in zip(cells, (0, radius // 9), strict=True):
            side.append(_discs(height, width, across, radius, shift) or empty)
    return cells


def _discs(height: int, width: int, across: int, radius: int, shift: int) -> str:
    x = np.arange(-radius, radius)
    half = np.sqrt(radius**2 - x**2).astype(int)
    middles = (np.arange(across) + 0.5) / across
    left, top = (middles * width).astype(int) + shift, (middles * height).astype(int)
    starts = ((left[:, None] + x) * height - half)[:, :, None] + top + 1
    lengths = np.broadcast_to(2 * half[None, :, None], starts.shape)
    runs = np.column_stack([starts.ravel(), lengths.ravel()])
    runs = runs[runs[:, 1] > 0]
    return " ".join(map(str, runs[np.argsort(runs[:, 0])].ravel().tolist()))


def _scans(rng: np.random.Generator, rows: int) -> Pair:
    """Days whose first and last 32 slices are empty; predictions are up to four pixels off."""
    cells: Pair = [], []
    for row in range(rows):
        radius = int(rng.integers(15, 25)) if 32 <= row // ORGANS % SLICES < 112 else 0
        for side, shift in zip(cells, (0, int(rng.integers(5))), strict=True):
            side.append(_discs(266, 266, 1, radius, shift + 30 * (row % ORGANS)))
    return cells


def _slices(rows: int) -> list[str]:
    places = (divmod(row // ORGANS, SLICES) for row in range(rows))
    return [f"case{day // 4 + 1}_day{day % 4}_slice_{number + 1:04}" for day, number in places]


def _sized(make: Callable[..., Pair], columns: str, **sizes: Any) -> tuple[Callable[..., Pair], dict[str, int]]:
    names = columns.split()
    return partial(make, **sizes), {names[0]: sizes["height"], names[1]: sizes["width"]} if names else {}


CELLS: dict[str, tuple[Callable[..., Pair], dict[str, Any]]] = {
    "3d-object-detection-for-autonomous-vehicles": (_boxes_of_cars, {}),
    "AI4Code": (_cell_orders, {}),
    "billion-word-imputation": (partial(_letters, length=140, alphabet="etaoin shrdlu "), {}),
    "bms-molecular-translation": (partial(_letters, length=110, alphabet="CHNO123456-(),/", start="InChI=1S/"), {}),
    "cdiscount-image-classification-challenge": (partial(_classes, count=5_270, form="1000{:06}"), {}),
    "facebook-recruiting-iii-keyword-extraction": (partial(_tags, count=42_000, each=3), {}),
    "google-research-identify-contrails-reduce-global-warming": _sized(
        _masks, "height width", height=256, width=256, empty="-"
    ),
    "h-and-m-personalized-fashion-recommendations": (partial(_classes, count=105_542, guesses=12, form="1{:08}"), {}),
    "herbarium-2020-fgvc7": (partial(_classes, count=32_093), {}),
    "herbarium-2021-fgvc8": (partial(_classes, count=64_500), {}),
    "herbarium-2022-fgvc9": (partial(_classes, count=15_505), {}),
    "hotel-id-2021-fgvc8": (partial(_classes, count=7_770, guesses=5), {}),
    "hubmap-kidney-segmentation": _sized(
        _masks, "height_pixels width_pixels", height=18_484, width=13_013, across=10, share=1
    ),
    "imet-2020-fgvc7": (partial(_tags, count=3_474, each=4), {}),
    "inaturalist-2019-fgvc6": (partial(_classes, count=1_010), {}),
    "kuzushiji-recognition": (_characters, {}),
    "tgs-salt-identification-challenge": _sized(_masks, "", height=101, width=101),
    "uw-madison-gi-tract-image-segmentation": (_scans, {"image_width": "266.0", "image_height": "266.0"}),
    "vesuvius-challenge-ink-detection": _sized(_masks, "height width", height=7_606, width=5_249, across=20, share=1),
    "whale-categorization-playground": (partial(_classes, count=4_251, guesses=5, form="w_{:07x}"), {}),
}


def _questions(twin: Competition, full: Competition, rng: np.random.Generator) -> pd.DataFrame:
    """tensorflow2-question-answering, whose answers are JSON lines: with articles of a real length."""
    records = [json.loads(line) for line in twin.answers.read_text(encoding="utf-8").splitlines()]
    for record in records:
        record["document_text"] = (record["document_text"] * PAGE)[:PAGE]
    gold = _read(twin.gold_submission)
    copies = -(-ROWS[twin.id] // len(gold))
    with full.answers.open("w", encoding="utf-8") as file:
        for copy in range(copies):
            file.writelines(
                json.dumps({**record, "example_id": f"{copy:04}{record['example_id']}"}) + "\n" for record in records
            )
    repeated = pd.concat(
        [gold.assign(example_id=f"{copy:04}" + gold["example_id"]) for copy in range(copies)], ignore_index=True
    )
    return _moved(repeated, ["PredictionString"], rng).sample(frac=1, random_state=0)


if __name__ == "__main__":
    main()
