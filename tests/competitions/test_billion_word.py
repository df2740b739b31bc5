"""The split of the billion words, which goes block by block, against one that goes line by line."""

import io
import zipfile
from collections.abc import Callable, Iterable
from importlib import import_module
from operator import eq
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench.engine import byte_chunks
from mlebench.kit import public_sample
from mlebench.kit.outputs import run_prepare
from mlebench.kit.twins import zip_bytes
from mlebench.registry import Competition

pytestmark = pytest.mark.bytes

prepare = import_module("mlebench.competitions.billion-word-imputation.prepare")


@settings(max_examples=settings().max_examples // 12)
@given(st.integers(0, 2**31), st.integers(1, 3000), st.integers(1, 40), st.booleans())
def test_sentences_and_words_do_not_depend_on_blocks(seed: int, per_block: int, longest: int, ends: bool) -> None:
    rng = np.random.RandomState(seed)
    lines = [
        " ".join("abcé"[number % 4] * (number % 3 + 1) for number in range(n)) for n in rng.randint(0, longest, 4000)
    ]
    text = "\n".join(lines).encode() + b"\n" * ends
    kept = text.splitlines(keepends=True)
    blocks = [b"".join(kept[start : start + per_block]) for start in range(0, len(kept), per_block)]
    whole, shown, rest = drawn_one_by_one(line.decode() for line in kept)
    found = prepare._hold_out(blocks)
    assert (found.whole, found.shown) == (whole, shown)
    assert b"".join(prepare._without(blocks, found.cuts)) == rest.encode()


def drawn_one_by_one(lines: Iterable[str]) -> tuple[list[str], list[str], str]:
    draws, whole, shown, rest = np.random.RandomState(0), [], [], []
    for line in lines:
        words = line.split()
        if draws.uniform() <= 0.01 and len(words) > 2:
            lost = draws.randint(1, len(words) - 1)
            whole.append(line.strip())
            shown.append(" ".join(word for place, word in enumerate(words) if place != lost))
        else:
            rest.append(line)
    return whole, shown, "".join(rest)


@pytest.mark.parametrize("block_bytes", [1000, byte_chunks.LINES_BYTES])
def test_carriage_returns_end_sentences_as_in_a_text_file(
    block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.RandomState(1)
    spaces = rng.choice([" ", "  ", "\t", "\u2028", "\x85", "\x0b", "\x1c"], 60_000, p=[0.94, *[0.01] * 6])
    ends = rng.choice(["", "\n", "\r", "\r\n", "\r\r\n", "\n\r"], 60_000, p=[0.85, 0.05, *[0.025] * 4])
    words = [f"w{number}" for number in rng.randint(0, 99, 60_000)]
    text = "".join(map("".join, zip(words, spaces, ends, strict=True))).encode()
    whole, shown, rest = drawn_one_by_one(io.TextIOWrapper(io.BytesIO(text), "utf-8"))
    assert len(whole) > 50

    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/train_v2.txt.zip").write_bytes(zip_bytes({"train_v2.txt": text}))
    monkeypatch.setattr(byte_chunks, "LINES_BYTES", block_bytes)
    run_prepare(prepare.prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    with zipfile.ZipFile(tmp_path / "public/train_v2.txt.zip") as archive:
        assert archive.read("train_v2.txt") == rest.encode()
    for name, sentences in (("test.csv", whole), ("sample_submission.csv", shown)):
        lines = ['"id","sentence"', *(f'{number},"{sentence}"' for number, sentence in enumerate(sentences))]
        assert (tmp_path / "private" / name).read_bytes() == "".join(f"{line}\n" for line in lines).encode()


def test_a_published_seed_tells_where_words_are_missing_under_v1_alone(
    default_twin: Callable[..., Competition],
) -> None:
    """L13. Its score is a mean distance between sentences, so the cheaters' harness cannot show what this gains."""
    competitions = {profile: default_twin("billion-word-imputation", profile) for profile in ("v1", "v2")}
    samples = {
        profile: public_sample(competition)["sentence"].tolist() for profile, competition in competitions.items()
    }
    with zipfile.ZipFile(competitions["v1"].raw_dir / "train_v2.txt.zip") as archive:
        drawn = drawn_one_by_one(io.TextIOWrapper(archive.open("train_v2.txt"), "utf-8"))[1]
    assert samples["v1"] == drawn
    assert np.mean([*map(eq, samples["v2"], drawn)]) < 0.4
    assert [len(sentence.split()) for sentence in samples["v2"]] == [len(sentence.split()) for sentence in drawn]
