"""The agent `baseline`: what it makes of folders it has never seen, and how it does on twins."""

import json
import math
import os
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support import baseline_in_process

from mlebench.core import paths
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import grade_csv
from mlebench.kit import public_sample_bytes
from mlebench.registry import Competition, Registry

IDS = Registry().list_competition_ids()
# One of each kind it can do, and some it cannot: `make test` tries these, `.ci/run` all.
SOME = {
    "spaceship-titanic", "spooky-author-identification", "nomad2018-predict-transparent-conductors",
    "aerial-cactus-identification", "plant-seedlings-classification", "freesound-audio-tagging-2019",
    "random-acts-of-pizza", "text-normalization-challenge-english-language", "whale-categorization-playground",
    "hubmap-kidney-segmentation", "vesuvius-challenge-ink-detection", "detecting-insults-in-social-commentary",
}  # fmt: skip
TRIED = sorted(IDS if os.environ.get("MLEBENCH_BASELINE") == "all" else SOME)
LEAST_BETTER = 40 if len(TRIED) == len(IDS) else 9
NAMES = ("features", "files", "labels", "media", "metric", "outside", "predictions", "tables", "task")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The agent's modules, which import each other by bare names as they do in a sandbox."""
    for folder in ("dummy", "baseline"):
        monkeypatch.syspath_prepend(str(paths.agents_dir() / folder))
    before = set(sys.modules)
    loaded = {name: __import__(name) for name in NAMES}
    yield Modules(loaded)
    for name in set(sys.modules) - before:
        if str(paths.agents_dir()) in str(getattr(sys.modules[name], "__file__", "")) and "." not in name:
            del sys.modules[name]


class Modules(dict[str, ModuleType]):
    def __getattr__(self, name: str) -> ModuleType:
        return self[name]


@pytest.fixture
def understand(modules: Any, tmp_path: Path) -> Callable[..., Any]:
    """What the agent makes of a folder: tables by name, and a sample submission."""

    def call(sample: str, description: str = "", **files: str) -> Any:
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text)
        path = tmp_path / "sample_submission.csv"
        path.write_text(sample)
        return modules.task.understand(
            modules.tables.read_sample(path.read_bytes()),
            modules.tables.find(tmp_path, path.name),
            modules.files.Files(tmp_path),
            description,
            modules.metric.from_description(description),
        )

    return call


def rows(header: str, *lines: str) -> str:
    return "\n".join([header, *lines, ""])


def test_ids_and_targets_are_recognised_by_the_test_table(understand: Callable[..., Any]) -> None:
    task = understand(
        rows("Price,Key,Note", "0,007,red", "0,008,blue"),
        train__csv=rows("key,note,size,PRICE", "001,a,1,10", "002,b,2,20", "003,c,3,30"),
        test__csv=rows("key,note,size", "008,blue,5", "007,red,4"),
    )
    assert (task.id, task.targets) == ("Key", ["Price"])
    assert list(task.truth["Price"]) == ["10", "20", "30"]
    assert set(task.inputs) == {"note", "size"}
    assert list(task.test["size"]) == ["5", "4"]
    assert list(task.group) == [1, 0], "rows of the test table in the order of the sample's ids"


def test_targets_may_be_the_names_of_classes(understand: Callable[..., Any], modules: Any) -> None:
    task = understand(
        rows("id,cat,dog,eel", "7,0.3,0.3,0.4"),
        train__csv=rows("id,x,kind", "1,1,dog", "2,2,cat", "3,3,dog"),
        test__csv=rows("id,x", "7,2"),
    )
    question = modules.predictions.answer_format(task)
    assert (question.kind, question.width) == ("classes", 3)
    assert list(question.truth) == [1, 0, 1]


def test_several_labels_in_a_cell_are_flags(understand: Callable[..., Any], modules: Any) -> None:
    task = understand(
        rows("id,cat,dog", "7,0,0"),
        train__csv=rows("id,x,kinds", "1,1,cat", '2,2,"cat,dog"', "3,3,dog"),
        test__csv=rows("id,x", "7,2"),
    )
    question = modules.predictions.answer_format(task)
    assert question.kind == "flags"
    assert question.truth.tolist() == [[1, 0], [1, 1], [0, 1]]


def test_a_target_with_another_name_is_recognised_by_its_values(understand: Callable[..., Any]) -> None:
    task = understand(
        rows("Id,Category", "a.jpg,3", "b.jpg,5"),
        train__csv=rows("id,place,category_id", "1,5,3", "2,6,5", "3,5,5", "4,6,3"),
        test__csv=rows("id,place", "a.jpg,5", "b.jpg,6"),
    )
    assert list(task.truth["Category"]) == ["3", "5", "5", "3"]
    assert task.inputs == ["place"]


def test_several_rows_of_an_id_are_averaged(understand: Callable[..., Any], modules: Any) -> None:
    task = understand(
        rows("case,ill", "b,0.5", "a,0.5"),
        "The area under the ROC curve.",
        train__csv=rows("view,ill", *(f"{number},{number % 2}" for number in range(20))),
        test__csv=rows("case,view", "a,1", "b,2", "a,3"),
    )
    written = modules.predictions.filled(
        task, modules.predictions.answer_format(task), np.array([[0, 1], [0.9, 0.1], [0.5, 0.5]])
    )
    assert written.decode() == "case,ill\nb,0.1\na,0.75\n"


def test_a_row_may_ask_for_one_of_many_columns(understand: Callable[..., Any]) -> None:
    task = understand(
        rows("row,value", "9_left,0", "9_right,0"),
        train__csv=rows("case,left,right", "1,5,6", "2,7,8"),
        test__csv=rows("row,case,side", "9_left,9,left", "9_right,9,right"),
    )
    assert sorted(zip(task.train["side"], task.truth["value"], strict=True)) == [
        ("left", "5"), ("left", "7"), ("right", "6"), ("right", "8"),
    ]  # fmt: skip


def test_an_id_may_be_two_columns_or_a_column_and_a_position(understand: Callable[..., Any]) -> None:
    task = understand(
        rows("id,after", "1_0,", "1_1,", "2_0,"),
        train__csv=rows("s,t,before,after", "5,0,1,one", "5,1,2,two"),
        test__csv=rows("s,t,before", "1,0,2", "1,1,1", "2,0,2"),
    )
    assert list(task.test["before"]) == ["2", "1", "2"]
    lines = [{"id": "m", "letters": "AB", "level": [0.5, 1.5]}, {"id": "n", "letters": "BA", "level": [2.5, 3.5]}]
    task = understand(
        rows("id_at,level", "z_0,0", "z_1,0"),
        train__csv="",
        test__csv="",
        train__jsonl="\n".join(map(json.dumps, lines)),
        test__jsonl=json.dumps({"id": "z", "letters": "AB"}),
    )
    assert list(task.truth["level"]) == ["0.5", "1.5", "2.5", "3.5"]
    assert list(task.train["letters at +0"]) == ["A", "B", "B", "A"]
    assert list(task.test["letters at +0"]) == ["A", "B"]


def test_groups_without_test_rows_are_held_out_whole(understand: Callable[..., Any]) -> None:
    task = understand(
        rows("id,y", "90,0", "91,0"),
        train__csv=rows("id,patient_id,x,y", *(f"{n},p{n // 4},{n % 3},{n}" for n in range(20))),
        test__csv=rows("id,patient_id,x", "90,q1,1", "91,q2,2"),
    )
    assert task.inputs == ["x"]
    assert list(task.belongs_to) == [n // 4 for n in range(20)]


def picture(path: Path, colour: tuple[int, int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 10), colour).save(path)


@pytest.mark.parametrize("name", ["{}/{}.png", "{0}.{1}.png"], ids=["folders", "names"])
def test_classes_are_recognised_by_folder_or_file_names(
    understand: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    for number in range(8):
        picture(tmp_path / "train" / name.format(("ant", "bee")[number % 2], number), (number, 0, 0))
    picture(tmp_path / "test/5.png", (1, 2, 3))
    task = understand(rows("id,label", "5,0.5"), "Give the probability that it is an ant, not a bee or an ant.")
    assert [len(files) for files in task.train_files] == [1] * 8
    assert [file.path for file in task.test_files[0]] == ["test/5.png"]
    ants = [
        ("ant" in files[0].path) == (cell == "1")
        for files, cell in zip(task.train_files, task.truth["label"], strict=True)
    ]
    assert all(ants), "the class that the description asks for is 1"


def test_files_of_the_same_name_are_distinguished_by_train_or_test(
    understand: Callable[..., Any], tmp_path: Path
) -> None:
    for number in range(4):
        picture(tmp_path / f"train_images/{number}.png", (number, 0, 0))
        picture(tmp_path / f"test_images/{number}.png", (number, 9, 9))
    numbers = range(4)
    task = understand(
        rows("image,y", *(f"{n},0" for n in numbers)), labels__csv=rows("image,y", *(f"{n},{n}.5" for n in numbers))
    )
    assert [files[0].path for files in task.train_files] == [f"train_images/{n}.png" for n in numbers]
    assert [files[0].path for files in task.test_files] == [f"test_images/{n}.png" for n in numbers]


def test_columns_that_are_not_predictions_are_left_alone(understand: Callable[..., Any], modules: Any) -> None:
    with pytest.raises(modules.task.UnclearError, match="nothing to predict"):
        understand(
            rows("id,mask", "1,1 1"), "## Evaluation\nThe Dice coefficient.", train__csv=rows("id,mask", "2,1 4")
        )
    with pytest.raises(modules.task.UnclearError, match="no table and no folder"):
        understand(rows("id,y", "1,0"), "Accuracy.", train__csv="", prices__csv=rows("day,price", "1,2", "2,3"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("## Evaluation\nSubmissions are scored on the root mean squared logarithmic error (RMSLE).", "rmsle"),
        ("# Evaluation\n\nArea under the ROC curve between the predicted probability and the target.", "auc"),
        ("Our accuracy is legendary.\n## Metric\nThe mean absolute error.\n## Files\nAUC", "mae"),
        ("## Evaluation\nQuadratic weighted kappa.", "kappa"),
        ("## Evaluation\nMulti-class logarithmic loss.", "log loss"),
        ("Mean F1-Score.", "f1"),
        ("Be nice.", "unknown"),
    ],
)
def test_the_metric_is_recognised_in_the_description(modules: Any, text: str, name: str) -> None:
    assert modules.metric.from_description(text).name == name


@pytest.mark.parametrize(
    ("truth", "sample", "metric", "expected"),
    [
        ("0 1 0 1", "0.5", "AUC", "0.25"),
        ("0 1 0 1", "0", "accuracy", "0"),
        ("False True False True", "False", "accuracy", "False"),
        ("1 2 3 3", "1", "accuracy", "1"),
        ("1 2 3 4", "0", "RMSE", "1"),
        ("1.5 2.5 3.5 1.5", "0", "", "1.5"),
        ("x y z z", "x y", "MAP@2", "x y"),
    ],
)
def test_cells_are_written_as_the_metric_and_the_sample_want_them(
    understand: Callable[..., Any], modules: Any, truth: str, sample: str, metric: str, expected: str
) -> None:
    task = understand(
        rows("id,y", f"9,{sample}"),
        metric,
        train__csv=rows("id,x,y", *(f"{n},{n},{cell}" for n, cell in enumerate(truth.split()))),
        test__csv=rows("id,x", "9,1"),
    )
    question = modules.predictions.answer_format(task)
    predicted = {"numbers": [[1]], "classes": [[0.75, 0.25]] if question.width == 2 else [[0.5, 0.3, 0.2]]}
    written = modules.predictions.filled(task, question, np.array(predicted[question.kind], dtype=float))
    assert written.decode() == f"id,y\n9,{expected}\n"


def test_files_that_are_damaged_or_late_have_no_features(modules: Any, tmp_path: Path) -> None:
    picture(tmp_path / "train/good.png", (200, 0, 0))
    (tmp_path / "train/bad.png").write_bytes(b"no picture")
    with wave.open(str(tmp_path / "train/good.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(np.zeros(9000, np.int16).tobytes())
    files = modules.files.Files(tmp_path)
    both = files.of(["good", "bad"], is_test=False)
    pictures = [[file for file in found if file.kind == "image"] for found in both]
    matrix = modules.media.features(pictures, files, modules.outside.Clock(60, math.inf))
    assert np.isfinite(matrix[0]).all()
    assert np.isnan(matrix[1]).all()
    assert np.isnan(modules.media.features(pictures, files, modules.outside.Clock(-1, math.inf))).all()
    sounds = [[file for file in both[0] if file.kind == "sound"]]
    assert np.isfinite(modules.media.features(sounds, files, modules.outside.Clock(60, math.inf))).all()


def test_an_invalid_candidate_never_replaces_a_submission(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = modules.outside.Submission(tmp_path, modules.outside.Trajectory(tmp_path))
    submission.begin(b"sample")
    for verdict in (False, None):
        monkeypatch.setattr(modules.outside, "validate", lambda content, verdict=verdict: (verdict, "no"))
        assert not submission.hand_in(b"worse")
        assert (tmp_path / "submission.csv").read_bytes() == b"sample"
    monkeypatch.setattr(modules.outside, "validate", lambda content: (True, "yes"))
    assert submission.hand_in(b"better")
    assert (tmp_path / "submission.csv").read_bytes() == b"better"


def _prepared(data_dir: Path, id: str) -> Competition:
    competition = Registry(data_dir).get_competition(id)
    prepare(competition, TwinSource())
    return competition


@pytest.mark.xdist_group("baseline")
def test_it_is_valid_on_twins_and_mostly_better_than_the_sample(tmp_path: Path) -> None:
    better = []
    for id in TRIED:
        competition = _prepared(tmp_path / "data", id)
        home = tmp_path / id
        assert baseline_in_process.run(competition, home) == 0
        report = grade_csv(home / "submission/submission.csv", competition)
        assert report.valid_submission, (id, (home / "log").read_text())
        (home / "sample.csv").write_bytes(public_sample_bytes(competition))
        score, sample = report.score, grade_csv(home / "sample.csv", competition).score
        assert score is not None
        if sample is None or math.isnan(sample) or (score < sample if report.is_lower_better else score > sample):
            better.append(id)
    assert len(better) >= LEAST_BETTER, better


def _story(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "logs/trajectory.jsonl").read_text().splitlines()]


@pytest.mark.xdist_group("baseline")
def test_it_writes_a_trajectory_is_reproducible_and_searches_further(titanic: Competition, tmp_path: Path) -> None:
    for name, trials in (("one", 0), ("two", 0), ("search", 3)):
        assert baseline_in_process.run(titanic, tmp_path / name, trials=trials) == 0
    one, two, search = (_story(tmp_path / name) for name in ("one", "two", "search"))
    assert one[0] == {"kind": "start", "time": one[0]["time"], "agent": "baseline", "model": None}
    assert (one[-1]["kind"], one[-1]["reason"]) == ("end", "finished")
    first = next(line["kind"] for line in one if line["kind"] != "start")
    assert first == "submission", "something valid is there before anything is looked at"
    values = [line["value"] for line in one if line["kind"] == "validation"]
    assert values == [line["value"] for line in two if line["kind"] == "validation"]
    assert all(
        line["metric"] == "accuracy" and line["higher_is_better"] for line in one if line["kind"] == "validation"
    )
    submissions = [(tmp_path / name / "submission/submission.csv").read_bytes() for name in ("one", "two")]
    assert submissions[0] == submissions[1] != titanic.sample_submission.read_bytes()
    searched = [line["value"] for line in search if line["kind"] == "validation"]
    assert searched[: len(values)] == values
    assert len(searched) >= len(values) + 3


def test_without_its_venv_a_run_says_how_to_install_it(titanic: Competition, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mlebench", "run", "--agent", "baseline", "-c", titanic.id, "--sandbox", "process"]
    place = ["--data-dir", titanic.paths.data_dir, "--runs-dir", tmp_path]
    done = subprocess.run([*command, *place], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "mlebench agents install baseline" in done.stderr


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    os.environ.get("MLEBENCH_REAL_AGENTS") != "1", reason="MLEBENCH_REAL_AGENTS=1 installs its packages and runs it"
)
def test_in_bubblewrap_with_its_own_packages_it_beats_the_sample(titanic: Competition, tmp_path: Path) -> None:
    mlebench = [sys.executable, "-m", "mlebench"]
    env = {**os.environ, "MLEBENCH_VENVS_DIR": str(tmp_path / "venvs")}
    subprocess.run([*mlebench, "agents", "install", "baseline"], env=env, check=True)
    options = ["--data-dir", titanic.paths.data_dir, "--runs-dir", tmp_path / "runs", "--sandbox", "bubblewrap"]
    command = [*mlebench, "run", "--agent", "baseline#baseline-search", "-c", titanic.id, "--time-limit", "60s"]
    subprocess.run([*command, *options], env=env, check=True)
    (submission,) = (tmp_path / "runs").glob("*/*/submission/submission.csv")
    score = grade_csv(submission, titanic).score
    sample = grade_csv(titanic.sample_submission, titanic).score
    assert score is not None
    assert sample is not None
    assert score > sample
    assert list(submission.parents[1].glob("logs/trajectory.jsonl"))
