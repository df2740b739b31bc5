"""The benchmark's published leaderboard: other people's figures, shown beside your own and marked as theirs."""

import json
from dataclasses import dataclass
from pathlib import Path

FIGURES = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class PublishedEntry:
    agent: str
    models: str
    date: str
    hours: float
    medals: dict[str, tuple[float, float]]  # by split: the percentage of any medal, and its standard error
    leakage: bool  # information about the test set is known to have leaked into its runs
    padded: bool  # missing runs were counted as failures
    code: bool  # its source code is public

    @property
    def marks(self) -> str:
        return ", ".join(word for word, holds in (("leakage", self.leakage), ("padded", self.padded)) if holds)


def published_entries() -> list[PublishedEntry]:
    """Best first."""
    rows = json.loads(FIGURES.read_text(encoding="utf-8"))["entries"]
    return [PublishedEntry(**{**row, "medals": {k: tuple(v) for k, v in row["medals"].items()}}) for row in rows]
