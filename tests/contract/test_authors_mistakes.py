"""One-line mistakes of a competition's author: each ends in one line that names file and line, and what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench.cli import main
from mlebench.contract.new_competition import new_competition

WRITE = "    public.write("
PLACE = '    public.place(raw.file("fish.csv"), "more/fish.csv")'
# What is done to a file of the scaffold (the beginning of a line is replaced), and what an author reads.
IN_PREPARE = {
    "data frame": ('"train.csv", train)', '"train.csv", train.to_pandas())', "line 8", "Table.from_pandas(frame)"),
    "raw file": ('"fish.csv"', '"fishes.csv"', "line 6", "did you mean fish.csv?"),
    "column dropped": ('drop("weight_g")', 'drop("wieght_g")', "line 9", "did you mean weight_g?"),
    "column selected": ('select("fish_id").', 'select("id").', "line 10", "choose from fish_id, length_cm"),
    "column of values": ("weight_g=250.0", "weight_g=[250.0]", "line 10", "has 1 values for 40 rows"),
    "columns as a list": ('select("fish_id", "weight_g")', 'select(["fish_id"])', "line 11", "takes a text as `names`"),
    "option": ("test_size=", "test_sze=", "line 6", "did you mean test_size?"),
    "share as text": ("test_size=0.2", 'test_size="0.2"', "line 6", "as `test_size`, not the text '0.2'"),
    "share above one": ("test_size=0.2", "test_size=20.0", "line 6", "between 0 and 1"),
    "too many test rows": ("test_size=0.2", "test_size=500", "line 6", "200 items cannot be split"),
    "no test rows": ("test_size=0.2", "test_size=0", "line 6", "into 200 for training and 0 for testing"),
    "no size": ("test_size=0.2, ", "", "line 6", "a split needs test_size or train_size"),
    "no seed": (", seed=0", "", "line 6", "missing a required argument: 'seed'"),
    "seed as text": ("seed=0", 'seed="0"', "line 6", "takes a whole number as `seed`"),
    "name twice": ('"test.csv"', '"train.csv"', "line 9", "train.csv is written twice"),
    "absolute name": ('"train.csv"', '"/train.csv"', "line 8", "is not a name inside its folder"),
    "name above": ('"train.csv"', '"../train.csv"', "line 8", "is not a name inside its folder"),
    "arguments swapped": ('"train.csv", train', 'train, "train.csv"', "line 8", "takes a text as `name`, not a Table"),
    "quoting": ('"train.csv", train', '"train.csv", train, quoting="all"', "line 8", "choose from minimal, nonnumeric"),
    "variable": ("train, test = ", "trian, test = ", "line 8", "NameError: name 'train' is not defined"),
    "method": ("raw.table", "raw.tabel", "line 6", "AttributeError: 'Raw' object has no attribute 'tabel'"),
    "import": ("accepts_paths, split", "accepts_paths, splits", "line 1", "cannot import name 'splits_rows'"),
    "package": (
        "import Output",
        "import Output, Raw, accepts_paths, split_rows\nimport nothing_so_called",
        "line 2",
        "No module named",
    ),
    "syntax": ("train, test = ", "train, test = = ", "line 6", "SyntaxError: invalid syntax"),
    "indentation": (WRITE, "  public.write(", "line 8", "IndentationError"),
    "parameters": (
        "public: Output, private",
        "private",
        "line 4",
        "called as `prepare(raw, public, private)`",
    ),
    "no function": ("def prepare", "def prepares", "prepare.py", "has no function `prepare`"),
    "end": (WRITE, "    exit()\n    public.write(", "line 8", "sys.exit(None)"),
    "zero": (WRITE, "    1 / 0\n    public.write(", "line 8", "ZeroDivisionError: division by zero"),
    "mask taken": (
        "test =",
        "test = raw, 0\n    raw.table('fish.csv').take([True])\n    _ =",
        "line 7",
        "takes a mask",
    ),
    "short mask": ('"train.csv", train', '"train.csv", train.where([True])', "line 8", "for each of the 160 rows"),
    "names placed": (
        WRITE,
        '    public.place("a.png", "b.png")\n#',
        "line 8",
        "as `raw.file(name)` is one",
    ),
    "missing placed": (WRITE, f"{PLACE.replace('fish', 'fih')}\n#", "line 8", "did you mean fish.csv?"),
    "placed twice": (WRITE, f"{PLACE}\n{PLACE}\n#", "line 8 or prepare.py, line 9", "is written twice"),
    "no pairs": (
        WRITE,
        '    public.place_each(raw.files("*"))\n#',
        "line 8",
        "pairs of a file and its new",
    ),
    "no folder": (WRITE, '    public.place_tree(raw, "images", "x")\n#', "line 8", "lacks images/"),
    "packed frame": (
        WRITE,
        '    public.pack("a.zip", {"a": train.to_pandas()})\n#',
        "line 8",
        "a in a.zip",
    ),
    "pack format": (WRITE, '    public.pack("a", {}, format="gzip")\n#', "line 8", "did you mean zip?"),
    "json": (WRITE, '    public.write_json("a.json", raw)\n#', "line 8", "a.json cannot be written"),
    "order": (
        WRITE,
        '    split_groups(train, "colour", test_size=1, seed=0, order="block")\n#',
        "line 8",
        "",
    ),
    "group": (
        WRITE,
        '    split_groups(train, "color", test_size=1, seed=0)\n#',
        "line 8",
        "mean colour?",
    ),
    "encoding": ('"fish.csv"', '"fish.csv", encoding="utf9"', "line 6", "unknown encoding: utf9"),
    "answers elsewhere": ('"answers.csv"', '"answer.csv"', "config.yaml", "`dataset.answers` is private/answers.csv"),
    "no answers": ("    private.write(", "    #", "config.yaml", "in private/ it wrote nothing"),
    "no sample": ('"sample_submission.csv"', '"sample.csv"', "config.yaml", "`dataset.sample_submission` is public/"),
}
IN_TWIN = {
    "nothing": ("    raw.write_csv(", "    print(", "twin.py", "`twin` wrote no file"),
    "another name": ('"fish.csv"', '"fishes.csv"', "prepare.py, line 6", "did you mean fishes.csv?"),
    "lengths": ("range(count)", "range(9)", "line 11", "fish_id has 9, length_cm has 200"),
    "absolute name": ('"fish.csv"', '"/fish.csv"', "line 11", "is not a name inside its folder"),
    "text": (
        "    raw.write_csv(",
        '    raw.write("a", "b")\n    raw.write_csv(',
        "line 11",
        "takes bytes as `content`",
    ),
    "count": ("raw.count(200", 'raw.count("200"', "line 6", "takes a whole number as `count`"),
    "function": ("def twin", "def twins", "twin.py", "has no function `twin`"),
    "parameters": ("def twin(raw: TwinFolder)", "def twin()", "line 4", "cannot be called as `twin(raw)`"),
    "columns": ("raw.write_csv(", "raw.write_csv('a.csv', ['x'])\n    raw.write_csv(", "line 11", "takes a dictionary"),
}
IN_CONFIG = {
    "answers": ("private/answers.csv", "private/answer.csv", "config.yaml", "in private/ it wrote answers.csv"),
    "private": ("private/answers.csv", "answers.csv", "config.yaml", "must be under public/ or private/"),
    "absolute": ("private/answers.csv", "/private/answers.csv", "config.yaml", "must be under public/ or private/"),
    "key": ("answers:", "answer:", "config.yaml", "did you mean answers?"),
}
IN_GRADE = {
    "nothing": ("    return rmse", "    rmse", "line 7", "`grade` returned nothing, not a number: return the score"),
    "text": ("return rmse(y_true, y_pred)", 'return "0.5"', "line 7", "`grade` returned a str"),
    "pair": ("return rmse(y_true, y_pred)", "return 0.5, 1", "line 7", "`grade` returned a tuple"),
    "id": ('"fish_id"', '"fishid"', "line 8", "the answers have no column 'fishid'; did you mean fish_id?"),
    "target": ('"weight_g"', '"weight"', "line 8", "the answers have no column 'weight'; did you mean weight_g?"),
    "mode": ('values="numbers"', 'values="number"', "line 8", "not the text 'number': did you mean numbers?"),
    "target's type": ('target="weight_g"', "target=1", "line 8", "takes a text or a list of texts as `target`"),
    "answers forgotten": (
        "submission, answers, id",
        "submission, id",
        "line 8",
        "a required argument: 'answers'",
    ),
    "order": ('answers, id="fish_id"', 'answers, "fish_id"', "line 8", "`align`: too many positional arguments"),
    "metric": ("import rmse", "import rsme", "line 4", "cannot import name 'rsme'"),
    "truth forgotten": ("rmse(y_true, ", "rmse(", "line 9", "missing 1 required positional argument"),
    "shapes": ("rmse(y_true, ", "rmse(y_true[:3], ", "line 9", "could not be broadcast together"),
    "parameters": (", answers: pd.DataFrame)", ")", "line 7", "cannot be called as `grade(submission, answers)`"),
    "own column": ("    return", '    submission["wieght"]\n    return', "line 9", "KeyError: 'wieght'"),
}


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scaffold with a unique id: its modules stay imported."""
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path))
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name).strip("-").replace("--", "-")
    return new_competition(tmp_path / f"fishing-{name}".replace("--", "-"))


@pytest.fixture
def said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command says on stderr; it gives no traceback."""

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main([*arguments, "--data-dir", str(tmp_path / "twins")])
        output = capfd.readouterr()
        assert "Traceback" not in output.out + output.err
        return output.err

    return run


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def prepare_says(folder: Path, said: Callable[..., str], file: str, mistake: tuple[str, str, str, str]) -> None:
    old, new, place, advice = mistake
    change(folder / file, old, new)
    (error,) = [line for line in said("prepare", "--twin", "-c", folder.name).splitlines() if line.startswith("Error:")]
    assert folder.name in error
    assert place in error
    assert file in error or file not in place
    assert advice in error
    assert "again" not in error


@pytest.mark.parametrize("mistake", IN_PREPARE)
def test_mistake_in_prepare(mistake: str, folder: Path, said: Callable[..., str]) -> None:
    change(folder / "prepare.py", "split_rows\n", "split_groups, split_rows\n") if mistake in (
        "order",
        "group",
    ) else None
    prepare_says(folder, said, "prepare.py", IN_PREPARE[mistake])


@pytest.mark.parametrize("mistake", IN_TWIN)
def test_mistake_in_twin(mistake: str, folder: Path, said: Callable[..., str]) -> None:
    prepare_says(folder, said, "twin.py", IN_TWIN[mistake])


@pytest.mark.parametrize("mistake", IN_CONFIG)
def test_mistake_in_config(mistake: str, folder: Path, said: Callable[..., str]) -> None:
    prepare_says(folder, said, "config.yaml", IN_CONFIG[mistake])


@pytest.mark.parametrize("mistake", IN_GRADE)
def test_mistake_in_grade(mistake: str, folder: Path, said: Callable[..., str], tmp_path: Path) -> None:
    old, new, place, advice = IN_GRADE[mistake]
    change(folder / "grade.py", old, new)
    said("prepare", "--twin", "-c", folder.name)
    sample = tmp_path / "twins" / folder.name / "prepared" / "public" / "sample_submission.csv"
    error = said("grade-sample", str(sample), folder.name)
    assert f"The grader of {folder.name} failed: grade.py, {place}: " in error
    assert advice in error


@pytest.fixture
def real_data(tmp_path: Path) -> Path:
    """Raw data without the target, which the twin has."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "fish.csv").write_text("fish_id,length_cm,colour\n1,10,silver\n2,12,gold\n", encoding="utf-8")
    return tmp_path / "raw"


def test_data_that_lacks_a_column_is_to_be_got_again(folder: Path, said: Callable[..., str], real_data: Path) -> None:
    fault = "has no column 'weight_g'; choose from fish_id, length_cm, colour; get the complete data again"
    assert fault in said("prepare", "-c", folder.name, "--from", str(real_data))


def test_a_wrong_call_is_the_authors_even_if_the_twin_does_not_reach_it(
    folder: Path, said: Callable[..., str], real_data: Path
) -> None:
    change(folder / "prepare.py", '"train.csv", train', '"train.csv", train if len(train) > 9 else 1')
    error = said("prepare", "-c", folder.name, "--from", str(real_data))
    assert "prepare.py, line 8: `write` takes a Table as `table`, not an int" in error
