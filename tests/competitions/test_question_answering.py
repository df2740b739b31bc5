"""Pages of tensorflow2-question-answering: under profile v2, all questions about one are on one side of the split."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench.registry import Competition

ID = "tensorflow2-question-answering"

pytestmark = pytest.mark.xdist_group(ID)


@pytest.mark.parametrize(("profile", "is_split"), [("v1", True), ("v2", False)])
def test_pages_are_torn_apart_under_v1_only(
    profile: str, is_split: bool, default_twin: Callable[..., Competition]
) -> None:
    competition = default_twin(ID, profile)
    train, test = (_pages(path) for path in (competition.public_dir / "simplified-nq-train.jsonl", competition.answers))
    assert bool(train & test) is is_split


def test_groups_are_pages(default_twin: Callable[..., Competition]) -> None:
    competition = default_twin(ID, "v2")
    with (competition.private_dir / "groups.csv").open(newline="") as lines:
        groups = {row["id"]: row["group"] for row in csv.DictReader(lines)}
    examples = [json.loads(line) for line in competition.answers.read_text(encoding="utf-8").splitlines()]
    pages = {
        f"{example['example_id']}_{kind}": _page(example["document_url"])
        for example in examples
        for kind in ("short", "long")
    }
    assert groups.keys() == pages.keys()
    assert len({*groups.values()}) == len({*pages.values()}) == len({(groups[id], pages[id]) for id in pages})


def _pages(path: Path) -> set[str]:
    return {_page(json.loads(line)["document_url"]) for line in path.read_text(encoding="utf-8").splitlines()}


def _page(address: str) -> str:
    """The address without the revision."""
    return address[: address.index("oldid=")]
