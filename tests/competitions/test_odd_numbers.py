"""Numbers in odd spellings, and numbers too large for any type.

Scores and verdicts are what the reference gave with pandas 2.2.2. Where its grader crashed, the submission is invalid.
"""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from support.golden_cases import score_or_verdict

from mlebench.grade import grade_csv, validate_format
from mlebench.kit import public_sample_bytes
from mlebench.registry import Competition

pytestmark = pytest.mark.bytes

Twin = Callable[[str], Competition]

NO_FLOAT = "9" * 400  # no float holds it
NO_INTEGER = "1" + "0" * 30  # nor do 64 bits hold this, but a float does
LARGEST, SMALLEST = "9223372036854775807", "-9223372036854775808"
FULLWIDTH_5, NBSP_5 = "\uff15", "\u00a05"

# What the twin's sample submission gets with this cell in its first row, or in every row.
IN_FIRST_ROW = {
    "alaska2-image-steganalysis": dict.fromkeys(("1_000", FULLWIDTH_5, NBSP_5, NO_INTEGER), 0.64901)
    | {"five": "invalid"},
    "aptos2019-blindness-detection": {LARGEST: 0.14815, SMALLEST: -0.04082},
    "champs-scalar-coupling": {"1_000": 1.55687, FULLWIDTH_5: 1.14159, NBSP_5: 1.14159, NO_INTEGER: 10.43146},
    "denoising-dirty-documents": {"1_000": 23.8705, FULLWIDTH_5: 0.41807, NBSP_5: 0.41807, "five": "invalid"},
    "facebook-recruiting-iii-keyword-extraction": {NO_INTEGER: 0.35333, "1e400": 0.35333},
    "hubmap-kidney-segmentation": {NO_INTEGER: 0.0, "1e400": "invalid"},
    "learning-agency-lab-automated-essay-scoring-2": {LARGEST: -0.18685, SMALLEST: -0.01436},
    "new-york-city-taxi-fare-prediction": {"1_000": 91.05732, FULLWIDTH_5: 7.03698, "five": "invalid"},
    "nfl-player-contact-detection": {LARGEST: -0.02218, SMALLEST: -0.02218},
    "nomad2018-predict-transparent-conductors": {"1_000": 1.23869, FULLWIDTH_5: 0.50166, NO_INTEGER: 10.21152},
    "plant-pathology-2020-fgvc7": {"1_000": 0.51389, NBSP_5: 0.51389, "five": "invalid"},
    "playground-series-s3e18": {"1_000": 0.48529, NO_INTEGER: 0.48529, "five": "invalid"},
    "predict-volcanic-eruptions-ingv-oe": {"1_000": 26865505.0, FULLWIDTH_5: 26865670.0, "five": "invalid"},
    "text-normalization-challenge-english-language": {NO_INTEGER: 0.8481, "1e400": 0.8481},
}
IN_ALL_ROWS = {
    "aerial-cactus-identification": {NO_INTEGER: "invalid", "1e400": "invalid"},
    "cassava-leaf-disease-classification": {NO_INTEGER: 0.0, "1e400": 0.0},
    "chaii-hindi-and-tamil-question-answering": {NO_INTEGER: 0.0, "1e400": 0.0},
    "facebook-recruiting-iii-keyword-extraction": {NO_INTEGER: 0.0, "1e400": 0.0},
    "google-research-identify-contrails-reduce-global-warming": {NO_INTEGER: 0.0, "1e400": "invalid"},
}
# Numbers too large to compute with: the reference crashed.
TOO_LARGE = {
    "jigsaw-toxic-comment-classification-challenge": NO_FLOAT,
    "jigsaw-unintended-bias-in-toxicity-classification": NO_FLOAT,
    "stanford-covid-vaccine": NO_FLOAT,
    "ventilator-pressure-prediction": NO_FLOAT,
    "predict-volcanic-eruptions-ingv-oe": "1e308",  # the sum is infinite
}


def _submission(competition: Competition, folder: Path, targets: list[str], cell: str, rows: int | None) -> Path:
    """The sample submission with this cell in some columns, in its first rows or in all."""
    reader = csv.DictReader(io.StringIO(public_sample_bytes(competition).decode("utf-8"), newline=""))
    lines = list(reader)
    for line in lines[:rows]:
        line.update(dict.fromkeys(targets, cell))
    path = folder / "submission.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, reader.fieldnames or [])
        writer.writeheader()
        writer.writerows(lines)
    return path


@pytest.mark.parametrize(
    ("name", "rows", "verdicts"),
    [(name, 1, verdicts) for name, verdicts in IN_FIRST_ROW.items()]
    + [(name, None, verdicts) for name, verdicts in IN_ALL_ROWS.items()],
)
def test_odd_numbers_get_the_references_score_or_verdict(
    name: str, rows: int | None, verdicts: dict[str, float | str], default_twin: Twin, tmp_path: Path
) -> None:
    competition = default_twin(name)
    targets = competition.submission["targets"][:1]
    found = {
        cell: score_or_verdict(_submission(competition, tmp_path, targets, cell, rows), competition)
        for cell in verdicts
    }
    assert found == verdicts


@pytest.mark.parametrize(("name", "cell"), TOO_LARGE.items())
def test_huge_numbers_are_the_submissions_fault(name: str, cell: str, default_twin: Twin, tmp_path: Path) -> None:
    competition = default_twin(name)
    path = _submission(competition, tmp_path, competition.submission["targets"], cell, None)
    assert grade_csv(path, competition).status == "invalid"
    assert not validate_format(path, competition)[0]


def test_nul_bytes_are_invalid_whatever_pandas_makes_of_them(titanic: Competition, tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    path.write_bytes(public_sample_bytes(titanic).replace(b"False", b"False\0", 1))
    report = grade_csv(path, titanic)
    assert (report.status, report.reason) == ("invalid", "Submission is not plain UTF-8 text: it has NUL bytes.")
