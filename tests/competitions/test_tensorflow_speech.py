"""The clips of tensorflow-speech under profile v2: twelve classes, and speakers and noise on one side of the split."""

import csv
import wave
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench.kit import open_raw
from mlebench.registry import Competition

ID = "tensorflow-speech-recognition-challenge"
COMMANDS = {"yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"}

pytestmark = pytest.mark.xdist_group(ID)


@pytest.fixture
def competition(default_twin: Callable[..., Competition]) -> Competition:
    return default_twin(ID, "v2")


def test_no_speaker_is_on_both_sides(competition: Competition) -> None:
    clips = competition.public_dir.glob("train/audio/*/*_nohash_*.wav")
    labels, groups = _labels(competition), _groups(competition)
    with open_raw(competition.raw_dir) as raw:
        speaker_of = {file.read(): _speaker(file.name) for file in raw.archive("train.7z").files("**/*_nohash_*.wav")}
    spoken = [name for name, label in labels.items() if label != "silence"]
    speakers = {name: speaker_of[(competition.public_dir / "test/audio" / name).read_bytes()] for name in spoken}
    assert speakers == {name: groups[name] for name in spoken}
    assert {_speaker(path.name) for path in clips}.isdisjoint(speakers.values())


def test_words_and_silence_have_as_many_clips_as_a_command_on_average(competition: Competition) -> None:
    counts = Counter(_labels(competition).values())
    assert {*counts} <= COMMANDS | {"unknown", "silence"}
    commands = sum(counts[command] for command in COMMANDS)
    assert counts["unknown"] == counts["silence"] == -(-commands // len(COMMANDS))


def test_silence_is_cut_from_noise_that_is_not_public(competition: Competition) -> None:
    groups = _groups(competition)
    folder = competition.public_dir / "train/audio/_background_noise_"
    public = {path.name: _samples(path) for path in folder.iterdir()}
    with open_raw(competition.raw_dir) as raw:
        whole = {file.path.name: file.read() for file in raw.archive("train.7z").files("**/_background_noise_/*.wav")}
    silent = [name for name, label in _labels(competition).items() if label == "silence"]
    assert silent
    for name in silent:
        cut, noise = _samples(competition.public_dir / "test/audio" / name), groups[name]
        assert whole[noise].find(cut) >= whole[noise].find(public[noise]) + len(public[noise])


def _labels(competition: Competition) -> dict[str, str]:
    return _columns(competition.answers, "fname", "label")


def _groups(competition: Competition) -> dict[str, str]:
    return _columns(competition.private_dir / "groups.csv", "id", "group")


def _columns(path: Path, id: str, name: str) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as lines:
        return {row[id]: row[name] for row in csv.DictReader(lines)}


def _speaker(name: str) -> str:
    return Path(name).name.split("_nohash_")[0]


def _samples(path: Path) -> bytes:
    with wave.open(str(path)) as sound:
        return sound.readframes(sound.getnframes())
