"""What checks look at: a competition's prepared twin, and its grader's verdicts on right and wrong submissions."""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from mlebench.config import FIRST_PROFILE, Keys, read_yaml
from mlebench.contract.file_hashes import file_hashes, raw_index
from mlebench.contract.submissions import submissions
from mlebench.core.errors import CompetitionError, ConfigError, InvalidSubmissionError
from mlebench.core.paths import CONFIG
from mlebench.core.suggestions import did_you_mean
from mlebench.data.answers import answers_for_grader
from mlebench.registry import Competition
from mlebench.validate.submission_table import read_table

INVALID = "invalid"
_ONLY_IN_V1 = ("accepts", "order_counts")  # later profiles have one form of submissions, without exceptions
# What must hold for a table that has columns of the truth yet gives nothing away.
ONE_ROW_PER, COLUMNS = "one_row_per", "columns"


@dataclass(frozen=True)
class ContractConfig:
    """The key `contract` of a config.yaml: exceptions to the contract, and where its checks must look."""

    accepts: list[str] = field(default_factory=list)  # faulty submissions that the grader accepts
    order_counts: bool = False  # the order of a submission's rows changes its score
    uncounted_rows: bool = False  # rows whose truth is negative or missing do not count
    secret_ids: bool = False  # which ids count is secret, so gold does not have all of them
    truth_is_an_order: bool = False  # the truth of a row is the order of public things
    renumbered: bool = False  # train and test are numbered separately, so equal ids mean nothing
    row_keys: list[str] = field(default_factory=list)  # columns that tell rows apart where there is no id
    joined_id: list[str] = field(default_factory=list)  # columns that, joined with _, are the id
    labels: dict[str, str] = field(default_factory=dict)  # public table with labels: its column with ids
    labelled_files: dict[str, str] = field(default_factory=dict)  # files whose path gives the label: files to predict
    harmless: dict[str, dict[str, Any]] = field(default_factory=dict)  # tables that hold truth but give nothing away
    closed_archives: list[str] = field(default_factory=list)  # the description need not explain what is in them
    absent: list[str] = field(default_factory=list)  # files that the description names, and agents do not find
    nothing_to_compare: str = ""  # why the search for leaks finds nothing to compare

    @classmethod
    def of(cls, competition: Competition) -> "ContractConfig":
        path = competition.folder / CONFIG
        values = read_yaml(path)
        declared = Keys(path, values).get("contract", dict, default={})
        if competition.profile != FIRST_PROFILE:
            own = Keys(path, values.get(competition.profile) or {}).get("contract", dict, default={})
            declared = {name: value for name, value in declared.items() if name not in _ONLY_IN_V1} | own
        keys = Keys(path, declared, "contract.")
        keys.only({item.name for item in fields(cls)})
        default = cls()
        checked = {}
        for name in declared:
            default_value = getattr(default, name)
            checked[name] = keys.get(name, type(default_value), default=default_value)
        for name, condition in checked.get("harmless", {}).items():
            if not isinstance(condition, dict) or len(condition) != 1 or not {*condition} <= {ONE_ROW_PER, COLUMNS}:
                raise ConfigError(
                    f"{path}: `contract.harmless.{name}` must be {ONE_ROW_PER}: COLUMN or {COLUMNS}: [...]"
                )
        return cls(**checked)


@dataclass(frozen=True)
class CompetitionCase:
    """A competition's twin of one seed and size, with what another implementation makes of it, if that is known."""

    competition: Competition
    seed: int = 0
    size: float = 1.0
    golden: dict[str, Any] | None = None

    @cached_property
    def config(self) -> ContractConfig:
        return ContractConfig.of(self.competition)

    @cached_property
    def file_hashes(self) -> dict[str, Any]:
        folders = self.competition.paths
        return file_hashes(folders.prepared, raw_index(folders.raw))

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
        return submissions(sample, gold, facts["id"], facts["targets"], facts.get("truth"), facts.get("key", ()))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.competition.paths.prepared).as_posix()

    @property
    def truth(self) -> list[str]:
        """The columns of the answers that must stay secret."""
        facts = self.competition.submission
        return facts.get("truth", facts["targets"])

    def answers(self) -> Any:
        """Read again each time, since a grader may change what it is given."""
        answers = answers_for_grader(self.competition)
        return answers if isinstance(answers, pd.DataFrame) else list(answers)

    @cached_property
    def verdicts(self) -> dict[str, float | str]:
        """What each submission gets: a score, `nan` or `invalid`. Any other exception of the grader escapes."""
        return {name: self._verdict(name, content) for name, content in self.submissions.items()}

    def _verdict(self, name: str, content: bytes) -> float | str:
        try:
            score = self.competition.grader.score(read_table(io.BytesIO(content), self.competition), self.answers())
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
