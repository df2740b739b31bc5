"""`private/groups.csv`: intervals draw whole groups, reports name the file by its hash, and a wrong file is refused."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench.core.errors import NotPreparedError, PrerequisiteError
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.data.verification import verify
from mlebench.grade import Limits, grade_csv
from mlebench.grade.interval import DRAWS, drawn_scores
from mlebench.registry import Competition, Registry
from mlebench.report import make_standings
from mlebench.scoring import Grader

MATERIALS, PAGES = "nomad2018-predict-transparent-conductors", "denoising-dirty-documents"
TARGETS = ["formation_energy_ev_natom", "bandgap_energy_ev"]


@pytest.fixture
def materials(tmp_path: Path) -> Competition:
    competition = Registry(tmp_path / "data", "v2").get_competition(MATERIALS)
    prepare(competition, TwinSource())
    return competition


def _groups(competition: Competition) -> dict[str, list[str]]:
    """The ids of each group."""
    table = pd.read_csv(competition.private_dir / "groups.csv", dtype=str)
    return table.groupby("group")["id"].agg(list).to_dict()


def test_an_interval_is_that_of_every_possible_draw_of_groups(materials: Competition, tmp_path: Path) -> None:
    """All multisets of groups, each as likely as it is to be drawn, against the 400 draws of the report."""
    groups = [[int(id) for id in ids] for ids in _groups(materials).values()]
    assert len(groups) == 7
    truth = pd.read_csv(materials.answers, index_col="id")[TARGETS]
    rng = np.random.default_rng(0)
    wrong = truth.copy()
    for ids in groups:
        wrong.loc[ids] = truth.loc[ids] + rng.random()
    submission = tmp_path / "s.csv"
    wrong.reset_index().to_csv(submission, index=False)
    report = grade_csv(submission, materials, interval=True)
    logarithms = [pd.DataFrame(np.log1p(table.to_numpy()), table.index) for table in (wrong, truth)]
    sums = [np.square((logarithms[0] - logarithms[1]).loc[ids].to_numpy()).sum(axis=0) for ids in groups]
    scores: list[tuple[float, float]] = []
    for drawn in combinations_with_replacement(range(7), 7):
        rows = sum(len(groups[group]) for group in drawn)
        score = float(np.sqrt(sum(sums[group] for group in drawn) / rows).mean())
        ways = math.factorial(7) / math.prod(math.factorial(count) for count in Counter(drawn).values())
        scores.append((score, ways / 7**7))
    scores.sort()
    below = np.cumsum([share for _, share in scores])
    assert below[-1] == pytest.approx(1)

    def exact(share: float) -> float:
        return scores[int(np.searchsorted(below, share))][0]

    assert report.score_low is not None
    assert report.score_high is not None
    assert exact(0.005) - 1e-5 <= report.score_low <= exact(0.06) + 1e-5
    assert exact(0.94) - 1e-5 <= report.score_high <= exact(0.995) + 1e-5
    assert grade_csv(submission, materials, interval=True, limits=Limits()).score_low == report.score_low


def test_a_file_may_name_what_the_pattern_finds_in_ids(
    default_twin: Callable[..., Competition], tmp_path: Path
) -> None:
    """Two groups of pages: a quarter of draws takes one alone, so the limits are the errors of each."""
    competition = default_twin(PAGES, "v2")
    groups = _groups(competition)
    assert len(groups) == 2
    truth = pd.read_csv(competition.answers, dtype={"id": str})
    pages = truth["id"].str.partition("_")[0]
    error = pages.map({page: 0.01 * number for number, page in enumerate(sorted(set(pages)), 1)})
    submission = tmp_path / "s.csv"
    truth.assign(value=truth["value"] + error)[["id", "value"]].to_csv(submission, index=False)
    report = grade_csv(submission, competition, interval=True)
    of_groups = sorted(float(np.sqrt(np.square(error[pages.isin(ids)]).mean())) for ids in groups.values())
    assert (report.score_low, report.score_high) == (pytest.approx(of_groups[0]), pytest.approx(of_groups[1], abs=1e-5))


@pytest.mark.parametrize("of_one_value", [True, False])
def test_groups_of_a_file_hold_all_rows_of_their_ids(of_one_value: bool) -> None:
    """Ids occur several times, and a group has several values of the column that the competition names groups by."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(120), 5)
    patients = ids // 6 if of_one_value else ids // 2
    truth = pd.DataFrame({"id": ids, "patient": patients, "y": rng.random(20)[ids // 6]})
    submission = pd.DataFrame({"id": ids, "y": np.zeros(600)})

    def error(left: pd.DataFrame, right: pd.DataFrame) -> float:
        assert set(right["id"].value_counts()) == {5}
        assert set(right["patient"].value_counts()) == {30 if of_one_value else 10}  # none is mixed with another
        return float(np.mean(right["y"]) - np.mean(left["y"]))

    facts = {"id": "id", "groups": {"column": "patient"}}
    grader, group_of = Grader("error", error), {id: f"g{id // 6}" for id in range(120)}
    scores = drawn_scores(grader, submission, truth, facts, grader.score(submission, truth), group_of)
    assert scores is not None
    assert len(scores) == DRAWS
    assert np.std(scores) == pytest.approx(truth["y"].std() / math.sqrt(20), rel=0.2)


WRONG_FILES: dict[str, Callable[[str], bytes]] = {
    "a line is missing": lambda text: text[: text.rindex("\n", 0, -1) + 1].encode(),
    "an id is unknown": lambda text: f"{text}99,1\n".encode(),
    "an id has two groups": lambda text: f"{text}1,elsewhere\n".encode(),
    "a group is empty": lambda text: text.replace("\n1,", "\n1,\n1,", 1).encode(),
    "a column is missing": lambda text: text.replace("id,group", "id,other").encode(),
    "it is not text": lambda text: b"id,group\n\xff\xfe,1\n",
    "rows are too long": lambda text: text.replace("\n", ",x\n").replace("id,group,x", "id,group").encode(),
    "it is empty": lambda text: b"",
}


@pytest.mark.parametrize("kind", WRONG_FILES)
def test_a_wrong_file_is_refused_by_name(materials: Competition, kind: str) -> None:
    file = materials.private_dir / "groups.csv"
    file.write_bytes(WRONG_FILES[kind](file.read_text()))
    with pytest.raises(NotPreparedError) as error:
        grade_csv(materials.gold_submission, materials, interval=True)
    assert str(file) in str(error.value)
    assert "Prepare again: `mlebench prepare -c nomad2018" in str(error.value)
    assert "--force" in str(error.value)
    assert "\n" not in str(error.value)
    assert not (materials.paths.data_dir / "grades.jsonl").exists()  # nothing was compared with the answers
    assert grade_csv(materials.gold_submission, materials).score == 0  # which needs no groups
    assert [difference.file for difference in verify(materials)] == ["private/groups.csv"]


def test_reports_name_the_file_by_its_hash(materials: Competition) -> None:
    content = (materials.private_dir / "groups.csv").read_bytes()
    report = grade_csv(materials.gold_submission, materials)
    assert report.groups == hashlib.sha256(content).hexdigest()[:16]
    assert report.to_record().groups == report.groups
    (materials.private_dir / "groups.csv").unlink()
    assert grade_csv(materials.gold_submission, materials).groups is None
    assert [difference.file for difference in verify(materials)] == ["private/groups.csv"]


def test_profile_v1_knows_no_such_file(titanic: Competition) -> None:
    assert titanic.profile == "v1"
    report = grade_csv(titanic.gold_submission, titanic)
    file = titanic.private_dir / "groups.csv"
    file.write_bytes(b"anything")
    try:
        assert grade_csv(titanic.gold_submission, titanic, interval=True).groups is report.groups is None
    finally:
        file.unlink()


def test_standings_never_mix_two_groupings_of_one_competition(materials: Competition, tmp_path: Path) -> None:
    file = materials.private_dir / "groups.csv"
    paths = [tmp_path / f"{name}.json" for name in ("one", "other", "without")]
    for path in paths:
        report = grade_csv(materials.gold_submission, materials)
        path.write_text(json.dumps({"competition_reports": [report.to_dict()]}))
        if path.stem == "one":
            file.write_text(file.read_text().replace(",1\n", ",one\n"))
        elif path.stem == "other":
            file.unlink()
    with pytest.raises(PrerequisiteError, match=r"of nomad2018-.*one\.json, .*other\.json") as error:
        make_standings(paths)
    assert "\n" not in str(error.value)
    assert make_standings([paths[0], paths[2]]).profile == "v2"  # an older report names none
