from collections.abc import Iterator, Sequence

import numpy as np

from mlebench.kit import ByteChunks, Output, Raw, RawFile, accepts_paths, split_rows

TEST_SHARE = 0.2
# How the 256 grey values are printed: as shares of white.
SHARES = [repr(value / 255) for value in range(256)]


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    dirty, clean = raw.archive("train.zip"), raw.archive("train_cleaned.zip")
    _, test = split_rows(page_names(dirty), test_size=TEST_SHARE, seed=0)
    prepare_pages(test, dirty, clean, public, private)


def page_names(dirty: Raw) -> list[str]:
    return [file.path.name for file in dirty.files("train/*.png")]


def prepare_pages(test: Sequence[str], dirty: Raw, clean: Raw, public: Output, private: Output) -> None:
    moved = {f"train/{page}": f"test/{page}" for page in test}
    hidden = {f"train_cleaned/{page}" for page in test}

    public.place_each((file, moved.get(file.name, file.name)) for file in dirty.files("**"))
    public.place_each((file, file.name) for file in clean.files("**") if file.name not in hidden)
    pages = [file for file in clean.files("train_cleaned/*.png") if file.name in hidden]
    public.write_pieces("sampleSubmission.csv", ByteChunks(lambda: _pixel_rows(pages, ["1"] * 256)))
    private.write_pieces("answers.csv", ByteChunks(lambda: _pixel_rows(pages, SHARES)))


def _pixel_rows(pages: Sequence[RawFile], printed: Sequence[str]) -> Iterator[bytes]:
    """A CSV with a row for each pixel: `page_row_column`, counted from 1, and its printed grey value."""
    yield b"id,value\n"
    for page in pages:
        pixels = page.grey_pixels()
        height, width = pixels.shape
        parts = (
            _characters([f"{page.path.stem}_{row}_" for row in range(1, height + 1)])[:, None],
            _characters([f"{column}," for column in range(1, width + 1)])[None],
            _characters([f"{value}\n" for value in printed])[pixels],
        )
        lines = np.concatenate([np.broadcast_to(part, (height, width, part.shape[2])) for part in parts], axis=2)
        yield lines.tobytes().translate(None, b"\0")


def _characters(texts: Sequence[str]) -> np.ndarray:
    """The bytes of each text, one row per text, padded with zeros."""
    encoded = np.array([text.encode("utf-8") for text in texts])
    return encoded.view(np.uint8).reshape(len(texts), -1)
