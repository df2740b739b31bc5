from collections.abc import Callable, Iterator

import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

ESSENTIAL, SUPPLEMENTAL = "mlsp_contest_dataset/essential_data", "mlsp_contest_dataset/supplemental_data"
PICTURES = ("filtered_spectrograms", "spectrograms", "supervised_segmentation")
SEGMENT_TABLES = ("histogram_of_segments", "segment_features", "segment_rectangles")
SPECIES = 19
ONE_HEADER = "rec_id,[histogram of segment features]"  # Quirk of v1: it fits the first, and all three tables get it


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_recordings(_one_by_one, ONE_HEADER, raw, public, private)


def _one_by_one(names: list[str]) -> np.ndarray:
    _, test = split_rows(np.arange(len(names)), test_size=round(0.2 * len(names)), seed=0)
    return test


def prepare_recordings(
    split: Callable[[list[str]], np.ndarray], header: str | None, raw: Raw, public: Output, private: Output
) -> dict[int, str]:
    """Prepare the recordings, and return the names of those for testing by their numbers.

    `split` chooses these numbers, given all names. The header is that of all tables of segments, or each has its own.
    """
    dataset = raw.archive("mlsp_contest_dataset.zip")
    folds = dataset.table(f"{ESSENTIAL}/CVfolds_2.txt")
    folds = folds.where(folds["fold"] == 0)  # the original's test recordings have no labels
    ids = np.arange(len(folds))  # recordings are renumbered
    new_ids = dict(zip(folds["rec_id"].tolist(), ids.tolist(), strict=True))
    names = dataset.table(f"{ESSENTIAL}/rec_id2filename.txt").where_in("rec_id", list(new_ids))
    names = names.assign(rec_id=[new_ids[old] for old in names["rec_id"].tolist()])
    name_of = dict(zip(names["rec_id"].tolist(), names["filename"].tolist(), strict=True))
    in_test = np.isin(ids, split([name_of[id] for id in ids.tolist()]))

    public.write("essential_data/CVfolds_2.txt", folds.assign(rec_id=ids, fold=in_test.astype(int)))
    public.write("essential_data/rec_id2filename.txt", names)
    public.write("sample_submission.csv", pairs_of(ids[in_test].tolist()).assign(Probability=0))
    labels = dict(_renumbered(dataset, f"{ESSENTIAL}/rec_labels_test_hidden.txt", new_ids))
    _write_labels(labels, in_test, public, private)
    _write_segments(dataset, new_ids, header, public)
    _place_recordings(dataset, names["filename"].tolist(), public)
    return {id: name_of[id] for id in ids[in_test].tolist()}


def _write_labels(labels: dict[int, str], in_test: np.ndarray, public: Output, private: Output) -> None:
    shown = {id: "?" if in_test[id] else species for id, species in labels.items()}
    lines = [f"{id},{species}" if species else f"{id}" for id, species in shown.items()]
    public.write_lines("essential_data/rec_labels_test_hidden.txt", ["rec_id,[labels]", *lines])

    hidden = {id: species for id, species in labels.items() if in_test[id]}
    heard = {100 * id + int(number) for id, species in hidden.items() for number in species.split(",") if number}
    answers = pairs_of(list(hidden))
    private.write("answers.csv", answers.assign(Probability=[int(pair in heard) for pair in answers["Id"].tolist()]))


def _write_segments(dataset: Raw, new_ids: dict[int, int], header: str | None, public: Output) -> None:
    for table in SEGMENT_TABLES:
        name = f"{SUPPLEMENTAL}/{table}.txt"
        rows = [f"{id},{values}" for id, values in _renumbered(dataset, name, new_ids)]
        public.write_lines(f"supplemental_data/{table}.txt", [header or dataset.lines(name)[0], *rows])


def _place_recordings(dataset: Raw, names: list[str], public: Output) -> None:
    sounds = [f"essential_data/src_wavs/{name}.wav" for name in names]
    pictures = [f"supplemental_data/{folder}/{name}.bmp" for folder in PICTURES for name in names]
    examples = [f"supplemental_data/segmentation_examples/{name}.bmp" for name in names]  # not all exist
    examples = [name for name in examples if dataset.exists(f"mlsp_contest_dataset/{name}")]
    overviews = [f"supplemental_data/{name}.bmp" for name in ("segment_clusters", "segment_mosaic")]
    for name in ["essential_data/species_list.txt", *overviews, *sounds, *pictures, *examples]:
        public.place(dataset.file(f"mlsp_contest_dataset/{name}"), name)


def _renumbered(dataset: Raw, name: str, new_ids: dict[int, int]) -> Iterator[tuple[int, str]]:
    """The lines below the header whose recordings are kept: their new id, and what follows the first comma."""
    for line in dataset.lines(name)[1:]:
        id, _, values = line.partition(",")
        if int(id) in new_ids:
            yield new_ids[int(id)], values


def pairs_of(recordings: list[int]) -> Table:
    """A row for each species of each recording; its id combines both numbers."""
    return Table.from_columns({"Id": [100 * id + species for id in recordings for species in range(SPECIES)]})
