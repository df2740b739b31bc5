"""Splits of profile v2 that follow pictures and signals, where one rule for all competitions is not enough."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench.data.sources import TwinSource
from mlebench.kit import groups_of_pictures, open_raw
from mlebench.registry import Competition, Registry

TEN_MINUTES = 60_000


def test_a_whale_with_several_pictures_stays_in_train_and_no_group_is_torn_apart(
    default_twin: Callable[..., Competition],
) -> None:
    competition = default_twin("whale-categorization-playground", "v2")
    labels = pd.read_csv(competition.raw_dir / "train.csv")
    with open_raw(competition.raw_dir) as raw:
        labels["group"] = groups_of_pictures([raw.file(f"train/{image}") for image in labels["Image"]])
    train, answers = pd.read_csv(competition.public_dir / "train.csv"), pd.read_csv(competition.answers)
    several = labels["Id"][labels["Id"].duplicated()]
    assert {*several} <= {*train["Id"]}
    in_test = labels["Image"].isin(answers["Image"])
    assert {*labels["group"][in_test]}.isdisjoint(labels["group"][~in_test])
    assert {*answers["Id"]} <= {*train["Id"]}
    seen_twice = labels.drop_duplicates(["Id", "group"])["Id"]
    assert {*seen_twice[seen_twice.duplicated()]} <= {*labels["Id"][in_test]}  # as under v1


def _other_times(raw: Path) -> None:
    """Let times not tell which segments follow each other."""
    table = pd.read_csv(raw / "train.csv")
    table["time_to_eruption"] += np.arange(len(table)) * 7
    table.to_csv(raw / "train.csv", index=False)


def _other_last_rows(raw: Path) -> None:
    """Let readings not tell which segments follow each other."""
    for number, path in enumerate(sorted((raw / "train").glob("*.csv"))):
        *lines, _ = path.read_text().splitlines()
        path.write_text("\n".join([*lines, ",".join([str(number + 5000.0)] * 10)]) + "\n")


def _last_rows_that_say_little(raw: Path) -> None:
    """Let segments begin and end with two readings and silence."""
    _other_times(raw)
    row = ",".join(["12.0", "7.0", *["0.0"] * 3, *[""] * 5])
    for path in (raw / "train").glob("*.csv"):
        header, _, *lines, _ = path.read_text().splitlines()
        path.write_text("\n".join([header, row, *lines, row]) + "\n")


def _segments_in_test(folder: Path, edit: Callable[[Path], None]) -> tuple[dict[int, int], dict[int, str]]:
    """The time of each segment in the twin, and the groups of those in the test set once the raw files were edited."""
    competition = Registry(folder, "v2").get_competition("predict-volcanic-eruptions-ingv-oe")
    TwinSource().fetch(competition)
    with (competition.raw_dir / "train.csv").open() as lines:
        times = {int(id): int(time) for id, time in list(csv.reader(lines))[1:]}
    edit(competition.raw_dir)
    competition.prepare_fn(raw=competition.raw_dir, public=competition.public_dir, private=competition.private_dir)
    groups = pd.read_csv(competition.private_dir / "groups.csv")
    return times, dict(zip(groups["id"], groups["group"], strict=True))


@pytest.mark.parametrize("edit", [_other_times, _other_last_rows])
def test_segments_that_follow_each_other_are_on_one_side(tmp_path: Path, edit: Callable[[Path], None]) -> None:
    times, groups = _segments_in_test(tmp_path, edit)
    following = {time - TEN_MINUTES: segment for segment, time in times.items()}
    pairs = [(following[time], segment) for segment, time in times.items() if time in following]
    assert len(pairs) > 20
    for first, second in pairs:
        assert groups.get(first) == groups.get(second)


def test_segments_with_hardly_any_readings_at_their_ends_are_not_taken_for_neighbours(tmp_path: Path) -> None:
    _, groups = _segments_in_test(tmp_path, _last_rows_that_say_little)
    assert len({*groups.values()}) == len(groups)
