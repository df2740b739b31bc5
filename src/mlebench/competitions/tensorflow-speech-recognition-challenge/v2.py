"""Test clips are of speakers whom the training clips lack (S5), and of the original's twelve classes (G1).

These are ten commands, `unknown` for the other twenty words, and `silence`, cut from the ends of the background
noises. On the original's board 206 teams share the score 0.09949, which is most likely that of the sample, `silence`
throughout: so all classes seem to have had about the same share. `unknown` and `silence` have as many clips here as a
command has on average. The order of test clips does not follow from a published seed (L12), and all are written alike,
so that no file's time tells silence from speech.
"""

import io
import math
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlebench.kit import (
    ByteChunks,
    Output,
    PrerequisiteError,
    Raw,
    RawFile,
    accepts_paths,
    secret_random,
    split_whole_groups,
)

from .prepare import TEST_SHARE, clips_of, numbered, place_for_training, word_of, write_tables

COMMANDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
NOISE = "_background_noise_"
HEAD = 1 << 12  # bytes: a tenth of a second


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    clips = clips_of(raw)
    spoken = [clip for clip in clips if word_of(clip) != NOISE]
    noises = [_read(clip) for clip in clips if word_of(clip) == NOISE]
    train, held_out = split_whole_groups(spoken, [_speaker_of(clip) for clip in spoken], test_size=TEST_SHARE, seed=0)
    test = _test_clips(held_out, noises, raw.scaled(16_000))
    answers = numbered(map(_label_of, test))

    place_for_training(train, public)
    for noise in noises:
        _write(noise.cut(0, _held_out_from(noise)), f"train/audio/{NOISE}/{noise.name}", public)
    for clip, name in zip(test, answers["fname"], strict=True):
        _write(clip, f"test/audio/{name}", public)
    write_tables(answers, public, private)
    groups = [clip.name if isinstance(clip, Noise) else _speaker_of(clip) for clip in test]
    private.write("groups.csv", answers.select("fname").rename({"fname": "id"}).assign(group=groups))


@dataclass(frozen=True)
class Noise:
    """A recording of background noise, or a part of one."""

    name: str  # of the recording's file
    parameters: Any  # what `wave` says of the file
    samples: np.ndarray

    def cut(self, start: int, end: int) -> "Noise":
        return Noise(self.name, self.parameters, self.samples[start:end])

    def wav(self) -> Iterator[bytes]:
        stream = io.BytesIO()
        with wave.open(stream, "wb") as sound:
            sound.setparams(self.parameters)
            sound.writeframes(self.samples.tobytes())
        yield stream.getvalue()


def _read(file: RawFile) -> Noise:
    with file.errors(), file.open() as stream, wave.open(stream) as sound:
        content, parameters = sound.readframes(sound.getnframes()), sound.getparams()
        # One item for each sample, whatever it consists of.
        samples = np.frombuffer(content, f"V{parameters.sampwidth * parameters.nchannels}")
    return Noise(file.path.name, parameters, samples)


def _held_out_from(noise: Noise) -> int:
    """The first sample of a recording's last two thirds, which are for testing: enough for cuts that do not overlap."""
    return len(noise.samples) // 3


def _test_clips(held_out: list[RawFile], noises: list[Noise], length: int) -> list[RawFile | Noise]:
    """All commands, as many other words and as much silence as one command has clips on average; in random order."""
    rng = secret_random(clip.head(HEAD) for clip in held_out)
    commands = [clip for clip in held_out if word_of(clip) in COMMANDS]
    others = [clip for clip in held_out if word_of(clip) not in COMMANDS]
    count = math.ceil(len(commands) / len(COMMANDS))
    rng.shuffle(others)
    clips = [*commands, *others[:count], *_silence(noises, count, length)]
    rng.shuffle(clips)
    return clips


def _silence(noises: list[Noise], count: int, length: int) -> Iterator[Noise]:
    """Cuts from the last two thirds of the noises in turn, at equal distances; they overlap if there are too many."""
    if not noises:
        raise PrerequisiteError(f"train.7z has no recording in train/audio/{NOISE}")
    for number, noise in enumerate(noises):
        cuts = len(range(number, count, len(noises)))
        first, last = _held_out_from(noise), len(noise.samples) - length
        if last < first:
            raise PrerequisiteError(
                f"train.7z: train/audio/{NOISE}/{noise.name} is too short for clips of its last two thirds"
            )
        for cut in range(cuts):
            start = first + (last - first) * cut // max(cuts - 1, 1)
            yield noise.cut(start, start + length)


def _speaker_of(clip: RawFile) -> str:
    return clip.path.name.split("_nohash_")[0]


def _label_of(clip: RawFile | Noise) -> str:
    if isinstance(clip, Noise):
        return "silence"
    return word_of(clip) if word_of(clip) in COMMANDS else "unknown"


def _write(clip: RawFile | Noise, name: str, public: Output) -> None:
    public.write_pieces(name, ByteChunks(clip.wav if isinstance(clip, Noise) else lambda: iter([clip.read()])))
