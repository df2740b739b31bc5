"""What checks look at: a competition's prepared twin, and its grader's verdicts on right and wrong submissions."""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mlebench.contract.allowances import Allowances
from mlebench.contract.fingerprints import fingerprint, raw_index
from mlebench.contract.submissions import submissions
from mlebench.core.errors import CompetitionError, InvalidSubmissionError
from mlebench.core.paths import CONFIG
from mlebench.core.suggestions import did_you_mean
from mlebench.data.answers import load_answers
from mlebench.registry import Competition
from mlebench.validate.reading import read_table

INVALID = "invalid"


@dataclass(frozen=True)
class Case:
    """A competition's twin of one seed and size, with what another implementation makes of it, if that is known."""

    competition: Competition
    seed: int = 0
    size: float = 1.0
    golden: dict[str, Any] | None = None

    @cached_property
    def allowances(self) -> Allowances:
        return Allowances.of(self.competition)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        where = self.competition.paths
        return fingerprint(where.prepared, raw_index(where.raw))

    @cached_property
    def submissions(self) -> dict[str, bytes]:
        from mlebench.kit import public_sample_bytes

        facts = self.competition.submission
        gold = self.competition.gold_submission.read_bytes()
        sample = public_sample_bytes(self.competition)
        _require_columns(sample, f"the sample submission, {self._name(self.competition.sample_submission)}", facts)
        _require_columns(
            gold, f"the gold submission, {self._name(self.competition.gold_submission)}", {"id": facts["id"]}
        )
        return submissions(sample, gold, facts["id"], facts["targets"], facts.get("truth"))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.competition.paths.prepared).as_posix()

    @property
    def truth(self) -> list[str]:
        """The columns of the answers that must stay secret."""
        facts = self.competition.submission
        return facts.get("truth", facts["targets"])

    def answers(self) -> Any:
        """Read again each time, since a grader may change what it is given."""
        return load_answers(self.competition.answers)

    @cached_property
    def verdicts(self) -> dict[str, float | str]:
        """What each submission gets: a score, `nan` or `invalid`. Any other exception of the grader escapes."""
        return {name: self._verdict(name, content) for name, content in self.submissions.items()}

    def _verdict(self, name: str, content: bytes) -> float | str:
        try:
            score = self.competition.grader.score(read_table(io.BytesIO(content)), self.answers())
        except InvalidSubmissionError:
            return INVALID
        except Exception as error:
            error.add_note(f"the submission was {name!r}")
            raise
        return "nan" if math.isnan(score) else score


def _require_columns(content: bytes, file: str, facts: Mapping[str, Any]) -> None:
    """Refuse facts about submissions that a right one contradicts."""
    header, *rows = [*csv.reader(io.StringIO(content.decode("utf-8-sig")))] or [[]]
    if not rows:
        raise CompetitionError(f"{file}, has no rows: let prepare write one for each row of the test set")
    for key, names in (("id", [facts["id"]]), ("targets", facts.get("targets", []))):
        for name in names:
            if name not in header:
                fault = f"`submission.{key}` names the column {name!r}, which {file}, does not have"
                raise CompetitionError(f"{fault}; {did_you_mean(str(name), header)}", CONFIG)
