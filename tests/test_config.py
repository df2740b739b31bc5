"""A competition's config.yaml: what its known issues may hold."""

from pathlib import Path

import pytest

from mlebench.config import CompetitionConfig, KnownIssue
from mlebench.core.errors import ConfigError

CONFIG = """
id: seeds
name: Seeds
grader: {name: accuracy}
higher_is_better: true
dataset: {answers: private/answers.csv, sample_submission: public/sample_submission.csv}
known_issues:
"""
LEAK = KnownIssue("L1", "leak", "Labels are public.", ("code", "real data"), "v2", "0.4 of rows")
UNMEASURED = KnownIssue("S1", "split", "Farms are on both sides.", (), None, "no")
PLAIN = KnownIssue(None, None, "Few seeds are scored.")
RECORDS = """
  - id: L1
    kind: leak
    text: Labels are public.
    seen: [code, real data]
    fixed_in: v2
    measured: 0.4 of rows
  - {id: S1, kind: split, text: Farms are on both sides., measured: no}
  - Few seeds are scored.
"""


def _load(folder: Path, issues: str) -> tuple[KnownIssue, ...]:
    (folder / "config.yaml").write_text(CONFIG + issues)
    return CompetitionConfig.load(folder).known_issues


def test_known_issues_are_records_or_plain_strings(tmp_path: Path) -> None:
    assert _load(tmp_path, RECORDS) == (LEAK, UNMEASURED, PLAIN)


@pytest.mark.parametrize(
    ("issue", "fault"),
    {
        "{id: L1, kind: leek, text: x}": "`known_issues[0].kind` is 'leek'; did you mean leak?",
        "{id: L1, text: x}": "`known_issues[0].kind` is missing",
        "{kind: leak, text: x}": "`known_issues[0].id` is missing",
        "{id: L1, kind: leak}": "`known_issues[0].text` is missing",
        "{id: 1, kind: leak, text: x}": "`known_issues[0].id` must be str, not 1",
        "{id: L1, kind: leak, text: x, sen: [code]}": "`known_issues[0].sen` is not known; did you mean seen?",
        "{id: L1, kind: leak, text: x, seen: [coed]}": "`known_issues[0].seen` holds 'coed'; did you mean code?",
        "{id: L1, kind: leak, text: x, seen: code}": "`known_issues[0].seen` must be list, not 'code'",
        "{id: L1, kind: leak, text: x, fixed_in: v1}": "`known_issues[0].fixed_in` is 'v1'; choose from v2",
        "{id: L1, kind: leak, text: x, measured: yes}": "`known_issues[0].measured` must be a figure or `no`",
        "7": "`known_issues[0]` must be dict or str, not 7",
        "{id: L1, kind: leak, text: x}\n- {id: L1, kind: leak, text: y}": "`known_issues` has the id L1 twice",
    }.items(),
)
def test_a_mistake_is_answered_with_file_and_key(tmp_path: Path, issue: str, fault: str) -> None:
    with pytest.raises(ConfigError) as error:
        _load(tmp_path, f"- {issue}\n")
    assert str(error.value) == f"{tmp_path / 'config.yaml'}: {fault}"
