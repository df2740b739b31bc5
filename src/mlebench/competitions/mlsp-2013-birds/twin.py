import numpy as np

from mlebench.kit.twins import TwinFolder, csv_bytes, image_bytes, rounded, wav_bytes

RATE = 16_000  # samples per second, as in the original
LENGTH = 240  # samples of a recording; ten seconds' worth in the original
TOP = "mlsp_contest_dataset"
SPECIES = {
    "BRCR": "Brown Creeper",
    "PAWR": "Pacific Wren",
    "PSFL": "Pacific-slope Flycatcher",
    "RBNU": "Red-breasted Nuthatch",
    "DEJU": "Dark-eyed Junco",
    "OSFL": "Olive-sided Flycatcher",
    "HETH": "Hermit Thrush",
    "CBCH": "Chestnut-backed Chickadee",
    "VATH": "Varied Thrush",
    "HEWA": "Hermit Warbler",
    "SWTH": "Swainson's Thrush",
    "HAFL": "Hammond's Flycatcher",
    "WETA": "Western Tanager",
    "BHGB": "Black-headed Grosbeak",
    "GCKI": "Golden Crowned Kinglet",
    "WAVI": "Warbling Vireo",
    "MGWA": "MacGillivray's Warbler",
    "STJA": "Stellar's Jay",
    "CONI": "Common Nighthawk",
}
SEGMENT_FEATURES = 6  # 38 in the original
VISITS = 12  # places and days with recordings; the original has more
WORDS = 10  # bins of a histogram; 100 in the original


def twin(raw: TwinFolder) -> None:
    """Signal: each species sings at its own pitch, and has its own bin in the histogram of segments.

    At a place and on a day, one in four species is there at all.
    """
    rng, count = raw.rng, raw.count(100, least=60)
    places, days = rng.randint(1, 18, VISITS), rng.permutation(np.arange(6, 31))[:VISITS]
    visit = rng.randint(0, VISITS, count)  # of each recording
    present = rng.rand(VISITS, len(SPECIES)) < 0.25
    sings = present[visit] & (rng.rand(count, len(SPECIES)) < rng.permutation(np.linspace(0.08, 0.8, len(SPECIES))))
    sings[::10, 0] = True  # so that there is always one to find
    sings[5::10] = False  # and sometimes none
    folds = rng.permutation(np.arange(count) % 2)
    names = [
        f"PC{place}_200906{day:02}_0{hour}0000_{number:04}"
        for number, (place, day, hour) in enumerate(
            np.column_stack([places[visit], days[visit], rng.randint(5, 9, count)]).tolist()
        )
    ]
    raw.write_zip(
        "mlsp_contest_dataset.zip",
        {
            **_essential(rng, sings, folds, names),
            **_supplemental(rng, sings, folds, names),
        },
    )


def _essential(rng: np.random.RandomState, sings: np.ndarray, folds: np.ndarray, names: list[str]) -> dict[str, bytes]:
    lines = ["rec_id,[labels]"]
    for id, (heard, fold) in enumerate(zip(sings, folds.tolist(), strict=True)):
        lines.append(",".join([str(id), *(["?"] if fold else map(str, np.flatnonzero(heard)))]))
    species = {"class_id": range(len(SPECIES)), "code": list(SPECIES), "species": list(SPECIES.values())}
    folder = f"{TOP}/essential_data"
    return {
        f"{folder}/CVfolds_2.txt": csv_bytes({"rec_id": np.arange(len(names)), "fold": folds}),
        f"{folder}/rec_id2filename.txt": csv_bytes({"rec_id": np.arange(len(names)), "filename": names}),
        f"{folder}/rec_labels_test_hidden.txt": _text(lines),
        f"{folder}/species_list.txt": csv_bytes(species, newline="\r\n"),
        **{f"{folder}/src_wavs/{name}.wav": _song(rng, heard) for name, heard in zip(names, sings, strict=True)},
    }


def _song(rng: np.random.RandomState, heard: np.ndarray) -> bytes:
    pitches = 1_000 + 300 * np.flatnonzero(heard)[:, None]  # cycles per second
    samples = rng.normal(0, 150, LENGTH) + 1_500 * np.sin(2 * np.pi * pitches * np.arange(LENGTH) / RATE).sum(axis=0)
    return wav_bytes(samples.round(), RATE)


def _supplemental(
    rng: np.random.RandomState, sings: np.ndarray, folds: np.ndarray, names: list[str]
) -> dict[str, bytes]:
    folder = f"{TOP}/supplemental_data"
    files = {f"{folder}/{name}.bmp": _picture(rng) for name in ("segment_clusters", "segment_mosaic")}
    for id, name in enumerate(names):
        for kind in ("filtered_spectrograms", "spectrograms", "supervised_segmentation"):
            files[f"{folder}/{kind}/{name}.bmp"] = _picture(rng)
        if folds[id] == 0 and id % 8 == 0:  # outlines are drawn in some spectrograms
            files[f"{folder}/segmentation_examples/{name}.bmp"] = _picture(rng)
    histograms = rng.poisson(0.3, (len(names), WORDS)) + 4 * sings[:, :WORDS]
    rows = [f"{id},{','.join(map(str, bins))}" for id, bins in enumerate(histograms.tolist())]
    files[f"{folder}/histogram_of_segments.txt"] = _text(["rec_id,[histogram of segment features]", *rows])
    owners = np.repeat(np.arange(len(names)), rng.randint(0, 4, len(names)))  # some recordings have no segments
    segments = np.arange(len(owners)) - np.searchsorted(owners, owners)
    features = rounded(rng.lognormal(-4, 4, (len(owners), SEGMENT_FEATURES)))
    corners = np.sort(rng.randint(0, 1_246, (len(owners), 2, 2)), axis=1).reshape(-1, 4)
    for table, header, values in (
        ("segment_features", "rec_id,segment_id,[feature vector]", features),
        ("segment_rectangles", "rec_id,segment_id,[min_x max_x min_y max_y]", corners[:, [0, 2, 1, 3]]),
    ):
        cells = zip(owners.tolist(), segments.tolist(), values.tolist(), strict=True)
        rows = [f"{id},{segment},{','.join(map(str, row))}" for id, segment, row in cells]
        files[f"{folder}/{table}.txt"] = _text([header, *rows])
    return files


def _picture(rng: np.random.RandomState) -> bytes:
    return image_bytes(rng.randint(0, 256, (4, 6, 3)), "BMP")


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
