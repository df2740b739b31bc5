"""`test-competition` and `new-competition`: a scaffold satisfies the contract; each fault is found and explained."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench.cli import main
from mlebench.contract.new_competition import new_competition
from mlebench.core.errors import PrerequisiteError

CHECKS = 17
# Which check finds it, what is done to a file of the scaffold, and what an author reads.
FAULTS = {
    "direction": (
        "leaderboard",
        "config.yaml",
        "higher_is_better: false",
        "higher_is_better: true",
        "reverse one of them",
    ),
    "unsorted": ("leaderboard", "leaderboard.csv", "21.5", "200", "best score first"),
    "no targets": ("facts", "config.yaml", ", targets: [weight_g]", "", "add `submission: {id: COLUMN, targets"),
    "unknown allowance": (
        "facts",
        "config.yaml",
        "known_issues: []",
        "contract: {acepts: []}",
        "`contract.acepts` is not",
    ),
    "named": ("description", "description.md", "weight of a fish", "weight in this kaggle task", "leave it out there"),
    "headings": ("description", "description.md", "## Evaluation", "## Metric", "needs the headings `## Description`"),
    "no function": ("code", "grade.py", "def grade", "def grades", "add the function"),
    "parameters": ("code", "prepare.py", "def prepare(raw: Raw, public", "def prepare(public", "these parameters"),
    "syntax": ("code", "prepare.py", "def prepare(", "def prepare((", "prepare.py, line 5: SyntaxError"),
    "random": (
        "twin",
        "twin.py",
        "raw.rng.normal",
        "__import__('numpy').random.normal",
        "take all randomness from `raw.rng`",
    ),
    "does not grow": ("twin", "twin.py", "raw.count(200, least=20)", "200", "from `raw.count`"),
    "crash in prepare": ("prepare", "prepare.py", '"fish.csv"', '"fishes.csv"', "fishes.csv"),
    "answers not written": (
        "prepare",
        "prepare.py",
        'private.write("answers.csv"',
        'private.write("other.csv"',
        "`dataset.answers` is private/answers.csv, which prepare.py did not write",
    ),
    "random split": ("prepare", "prepare.py", "seed=0", "seed=__import__('os').getpid() + id(public) % 997", "a seed"),
    "sample refused": ("sample", "prepare.py", "weight_g=250.0", "weight_g='heavy'", "Fix one of the two"),
    "wrong metric": ("gold", "grade.py", "rmse(y_true, y_pred)", "100 - rmse(y_true, y_pred)", "better than gold"),
    "lenient": (
        "faults",
        "grade.py",
        "    y_pred",
        "    submission = submission.drop_duplicates()\n    y_pred",
        "row twice",
    ),
    "by order": (
        "row order",
        "grade.py",
        "    return rmse(y_true, y_pred)",
        "    return rmse(y_true, submission['weight_g'].to_numpy())",
        "join the submission with the answers by id",
    ),
    "crash in grade": (
        "sample",
        "grade.py",
        "    y_pred",
        "    1 / (len(submission) - 40)\n    y_pred",
        "grade.py, line 8",
    ),
    "talkative": (
        "messages",
        "grade.py",
        "    y_pred",
        "    if len(submission) != len(answers):\n"
        "        from mlebench.kit import InvalidSubmissionError\n"
        "        raise InvalidSubmissionError(f'the first weighs {answers.weight_g[0]}')\n"
        "    y_pred",
        "mention the submission only",
    ),
    "stand-in": (
        "format check",
        "grade.py",
        "def grade(",
        "def stand_in(public):\n    return pd.DataFrame({'fish_id': ['x'], 'weight_g': [1.0]})\n\n\ndef grade(",
        "Let `stand_in`",
    ),
    "leak": ("leaks", "prepare.py", 'test.drop("weight_g")', "test", "gives the truth of test rows"),
    "nothing compared": (
        "leaks",
        "prepare.py",
        '"train.csv", train',
        '"train.csv", train.drop("weight_g")',
        "`labels`",
    ),
    "named labels": (
        "leaks",
        "prepare.py",
        '    public.write("test.csv"',
        "    for id, colour in zip(test['fish_id'], test['weight_g']):\n"
        "        public.place(raw.file('fish.csv'), f'test/{colour}_{id}.csv')\n"
        '    public.write("test.csv"',
        "let names of files of the test set say no more than the id",
    ),
    "photos not placed": (
        "files placed",
        "description.md",
        "- `train.csv`:",
        "- `photos/<id>.png`: a photo of each fish\n- `train.csv`:",
        "promises `photos/<id>.png`, but there is no such public file",
    ),
    "submission id": ("sample", "config.yaml", "id: fish_id", "id: fish", "did you mean fish_id?"),
    "submission target": ("sample", "config.yaml", "[weight_g]", "[weight]", "did you mean weight_g?"),
    "example": ("example", "description.md", "f00003,250.0", "f00003,heavy", "Fix the example or the grader"),
    "file not named": ("files named", "prepare.py", '"train.csv"', '"training.csv"', "`training.csv`"),
    "column not named": ("columns named", "description.md", "`length_cm`", "length", "the column `length_cm`"),
}


GRADING = ["sample", "gold", "faults", "row order", "format check", "messages", "example"]
DATA = [*GRADING, "leaks", "files named", "files placed", "columns named"]
# Which checks make no sense where another fails.
NOT_TRIED = {
    "direction": ["gold"],
    "unsorted": ["gold"],
    "no targets": [*GRADING, "leaks", "columns named"],
    "unknown allowance": [*GRADING, "leaks", "files named", "files placed", "columns named"],
    "no function": GRADING,
    "parameters": ["prepare", *DATA],
    "syntax": ["prepare", *DATA],
    "crash in prepare": DATA,
    "answers not written": DATA,
    "crash in grade": GRADING[1:],
    "submission id": [*GRADING[1:], "leaks"],
    "submission target": [*GRADING[1:], "leaks"],
}


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return int(end.value.code or 0), capsys.readouterr().out


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    """A scaffold with a unique id: its modules stay imported."""

    def made(case: str = "") -> Path:
        return new_competition(tmp_path / f"fishing-{'-'.join([*case.split(), request.node.name[:9]])}")

    return made


def test_scaffold_keeps_the_contract(make: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out = ran(capsys, "test-competition", str(make()))
    assert code == 0, out
    assert [line.split()[0] for line in out.splitlines()] == ["ok"] * CHECKS


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found_and_explained(
    fault: str, make: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    check, file, old, new, explanation = FAULTS[fault]
    path = make(fault) / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    code, out = ran(capsys, "test-competition", str(path.parent), "--json")
    rows = {row["check"]: row for row in json.loads(out)}
    assert code == 1
    assert explanation in " ".join(rows[check]["faults"])
    assert str(path.parent.parent) not in " ".join(rows[check]["faults"]) or check in ("facts", "prepare")
    not_tried = {name for name, row in rows.items() if row["state"] == "not tried"}
    assert not_tried == {*NOT_TRIED.get(fault, ())}


def test_your_own_golden_figures_are_compared(
    make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = tmp_path / "golden.json"
    golden.write_text('{"seed 3, size 0.5": {"files": {"public/x.csv": "0"}, "scores": {"gold": 0.0, "sample": 1.5}}}')
    code, out = ran(capsys, "test-competition", str(make()), "--golden", str(golden))
    assert code == 1
    assert "seed 3, size 0.5: public/x.csv is missing, golden is 0." in out
    assert "the submission 'sample' gets" in out
    assert "the submission 'gold'" not in out


def test_competition_is_named_by_an_id_or_a_folder(
    make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make()
    assert ran(capsys, "test-competition", folder.name)[0] == 2
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path))
    assert ran(capsys, "test-competition", folder.name)[0] == 0
    assert ran(capsys, "test-competition", str(tmp_path))[0] == 1


@pytest.mark.parametrize(("suffix", "fault"), [("", "does not exist"), ("/pond-fish", "is a competition's own folder")])
def test_a_search_path_that_finds_nothing_is_said_so(
    suffix: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if suffix:
        new_competition(tmp_path / "mine" / "pond-fish")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", f"{tmp_path / 'mine'}{suffix}")
    with pytest.raises(SystemExit):
        main(["test-competition", "pond-fish"])
    error = capsys.readouterr().err
    assert "there is no competition 'pond-fish'" in error
    assert f"The search path: {tmp_path / 'mine'}{suffix} {fault}" in error


def test_a_folder_in_place_of_an_id_leads_to_the_search_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new_competition(tmp_path / "pond-fish")
    with pytest.raises(SystemExit):
        main(["show", str(folder)])
    assert f"set MLEBENCH_COMPETITION_PATH={tmp_path} and name it pond-fish" in capsys.readouterr().err


def test_new_competition_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "river-fish").mkdir()
    for name in ("river-fish", "spaceship-titanic", "a.b", "fish", "-x"):
        with pytest.raises(PrerequisiteError):
            new_competition(tmp_path / name)
    assert [path.name for path in tmp_path.rglob("*")] == ["river-fish"]
