"""The parser of descriptions sees what is named and nothing else."""

import pytest

from mlebench.contract.description import ParsedDescription

TEXT = """
## Dataset Description

`train.csv`, `train/<id>.png`, `test/` with `clip_*.wav`, `band_08.npy` … `band_16.npy`,
`00001.jpg`, `00002.jpg` … in `Cover/`

Columns: `id`, `f_00` to `f_30`, `LL_<hertz>`, and `<patient>_<side>`, which is how an id is made.

### Submission File

```csv
id,target
1,"a, b"
```

## Other
"""


@pytest.mark.parametrize("path", ["train.csv", "train/a.png", "test/clip_1.wav", "test/band_08.npy", "Cover/00417.jpg"])
def test_files_that_are_named(path: str) -> None:
    assert ParsedDescription(TEXT).names_file(path)


@pytest.mark.parametrize(
    "path", ["test.csv", "train/a.jpg", "train/a/b.png", "val/a.png", "test/clip_1/x.wav", "test/band_17.npy", "a_b"]
)
def test_files_that_are_not_named(path: str) -> None:
    assert not ParsedDescription(TEXT).names_file(path)


def test_columns() -> None:
    named = ["id", "f_00", "f_17", "f_30", "LL_0.59", "target"]
    others = ["f_31", "f_x", "LL_", "Id", "site_id", "b", ""]
    assert [name for name in named + others if ParsedDescription(TEXT).names_column(name)] == named


def test_examples() -> None:
    sketch = TEXT.replace("```csv", "```text")
    assert ParsedDescription(TEXT).examples == [(False, ["id", "target"], [["1", "a, b"]])]
    assert ParsedDescription(sketch).examples == [(True, ["id", "target"], [["1", "a, b"]])]


def test_a_column_for_each_class() -> None:
    assert not ParsedDescription(TEXT).has_a_column_for_each_class
    assert ParsedDescription(TEXT + "and a column `<species>` for each species").has_a_column_for_each_class
