from collections.abc import Iterable

import numpy as np

from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths, is_in, split_rows, unique

DAYS_KEPT = 4  # of a training case; later ones are for testing


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    private.write("test.csv", prepare_scans(raw, public))


def prepare_scans(raw: Raw, public: Output) -> Table:
    """Write the public files; return the answers."""
    rows = raw.table("train.csv")
    days = np.array(["_".join(id.split("_", 2)[:2]) for id in rows["id"]], dtype=object)
    cases, test_cases, test_days = _split(unique(days))
    in_test = is_in(days, list(test_days))
    train, test = rows.where(~in_test), rows.where(in_test).rename({"segmentation": "predicted"})
    scans = [file for file in raw.files("train/**") if file.path.parts[1] in cases]
    sizes = _sizes(scans)
    width, height = np.array([sizes[id] for id in test["id"]], dtype=float).T

    public.write("train.csv", train)
    public.write("test.csv", test.drop("predicted"))
    public.write("sample_submission.csv", test.assign(predicted="1 1 5 2"))
    for scan in scans:
        _, case, day, *_ = scan.path.parts
        side = "test" if case in test_cases or day in test_days else "train"
        public.place(scan, f"{side}/{scan.name.removeprefix('train/')}")
    return test.assign(image_width=width, image_height=height)


def _split(days: Iterable[str]) -> tuple[set[str], set[str], set[str]]:
    """All cases; the cases to test, whole; and the days to test: theirs, and late ones of the other cases."""
    days_of: dict[str, list[str]] = {}
    for day in days:
        days_of.setdefault(day.split("_")[0], []).append(day)
    test_cases = set(split_rows(list(days_of), test_size=0.1, seed=42)[1])
    late = {case: sorted(own, key=_day_number)[DAYS_KEPT:] for case, own in days_of.items()}
    test_days = {day for case, own in days_of.items() for day in (own if case in test_cases else late[case])}
    return set(days_of), test_cases, test_days


def _day_number(day: str) -> int:
    return int(day.split("_day")[1])


def _sizes(scans: Iterable[RawFile]) -> dict[str, tuple[int, int]]:
    """Slice: width and height of its picture, which are part of its name: slice_0001_266_266_1.50_1.50.png."""
    sizes = {}
    for scan in scans:
        if scan.path.match("scans/slice_*.png"):
            _, number, width, height, *_ = scan.path.stem.split("_")
            sizes[f"{scan.path.parts[2]}_slice_{number}"] = int(width), int(height)
    return sizes
