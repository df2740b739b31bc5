"""`mlebench inspect plagiarism`: what the code of runs shares with a corpus of notebooks and with other runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlebench.core import paths
from mlebench.integrity.plagiarism.comparison import CodeComparison, compare
from mlebench.integrity.plagiarism.results import record_of
from mlebench.integrity.subjects import FindingsWriter, Subject
from mlebench.records.findings import Findings


@dataclass(frozen=True)
class CodeInspection:
    """What a run's code shares, and the record of it."""

    compared: CodeComparison
    record: Findings

    def to_dict(self) -> dict[str, Any]:
        subject = self.compared.subject
        return {
            "group": subject.group.paths.root.name if subject.group else None,
            "run": subject.name,
            "competition": subject.competition,
            **self.record.to_dict(),
        }


def inspect_plagiarism(subjects: Iterable[Subject], corpus: Path | None = None) -> Iterator[CodeInspection]:
    """Yield what the code of each subject shares with others, and write it to the runs' folders.

    `corpus` is a folder of programs and notebooks to compare with; by default, the notebooks of each competition that
    `mlebench dev download-kernels` got. Raises PrerequisiteError for a corpus without code.
    """
    writer = FindingsWriter()
    for compared in compare(subjects, lambda competition: _corpus_for(competition, corpus)):
        record = record_of(compared)
        writer.write(compared.subject, record)
        yield CodeInspection(compared, record)


def _corpus_for(competition: str, corpus: Path | None) -> tuple[str, Path | None, str]:
    if corpus is not None:
        return corpus.name or str(corpus), corpus, ""
    folder = paths.kernels_dir(competition)
    missing = (
        f"there are no notebooks of {competition} here: `mlebench dev download-kernels -c {competition}` gets them"
    )
    return f"published notebooks of {competition}", folder if folder.is_dir() else None, missing
