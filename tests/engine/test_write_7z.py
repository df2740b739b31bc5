"""Our 7z archives: what was put in comes out, and the same members always make the same file."""

import io
import os
from dataclasses import dataclass
from pathlib import Path

import py7zr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.contract.file_hashes import members_of
from mlebench.kit import Output, open_raw, public_sample_bytes, split_rows
from mlebench.kit.outputs import finish
from mlebench.kit.twins import seven_zip_bytes

pytestmark = pytest.mark.bytes

MEMBERS = {"b é.bin": bytes(range(256)) * 40, "a/deep.txt": b"x" * 5000, "empty": b"", "bare/": b""}


def _raw(folder: Path) -> Path:
    (folder / "raw").mkdir(exist_ok=True)
    (folder / "raw/photo.jpg").write_bytes(b"\xff\xd8" * 1000)
    (folder / "raw/t.csv").write_text("id,x\n" + "".join(f"{row},{row / 4}\n" for row in range(50)))
    return folder / "raw"


def _pack(folder: Path, *, deflate: bool) -> Path:
    public = Output(folder / "public")
    with open_raw(_raw(folder), folder) as raw:
        table, _ = split_rows(raw.table("t.csv"), test_size=0.2, seed=0)
        public.pack("out.7z", {**MEMBERS, "t.csv": table, "p.jpg": raw.file("photo.jpg")}, deflate=deflate)
        public.write("t.csv", table)
        finish([public], folder)
    assert {path.name for path in folder.iterdir()} == {"raw", "public"}, "nothing is left in the scratch folder"
    facts = dict(public.plan.facts())["out.7z"]
    assert facts["size"] == (folder / "public/out.7z").stat().st_size
    return folder / "public/out.7z"


@pytest.mark.parametrize("deflate", [False, True])
def test_a_pack_holds_tables_raw_files_bytes_and_folders(tmp_path: Path, deflate: bool) -> None:
    archive = _pack(tmp_path, deflate=deflate)
    table = (tmp_path / "public/t.csv").read_bytes()
    assert members_of(archive.read_bytes()) == MEMBERS | {"t.csv": table, "p.jpg": b"\xff\xd8" * 1000}
    with py7zr.SevenZipFile(archive) as opened:
        assert opened.getnames() == ["a/deep.txt", "b é.bin", "bare", "empty", "p.jpg", "t.csv"]


def test_a_pack_is_the_same_whenever_and_wherever_it_is_made(tmp_path: Path) -> None:
    made = []
    for place, mask in (("here", 0o022), ("there/deeper", 0o077)):
        (tmp_path / place).mkdir(parents=True)
        before = os.umask(mask)
        try:
            made.append(_pack(tmp_path / place, deflate=True).read_bytes())
        finally:
            os.umask(before)
    assert made[0] == made[1]


@given(st.dictionaries(st.sampled_from(["a", "b/c", "d.zip", "e f"]), st.binary(max_size=50), min_size=1))
def test_archives_of_twins_are_reproducible_and_keep_the_order_given(members: dict[str, bytes]) -> None:
    content = seven_zip_bytes(members)
    assert content == seven_zip_bytes(members)
    assert members_of(content) == members
    with py7zr.SevenZipFile(io.BytesIO(content)) as archive:
        assert archive.getnames() == list(members)


def test_packed_raw_files_are_unchanged(tmp_path: Path) -> None:
    raw = _raw(tmp_path)
    os.utime(raw / "photo.jpg", (1, 1))
    (raw / "photo.jpg").chmod(0o600)
    public = Output(tmp_path / "public")
    with open_raw(raw, tmp_path) as opened:
        public.pack("out.7z", {"p.jpg": opened.file("photo.jpg")})
        finish([public], tmp_path)
    status = (raw / "photo.jpg").stat()
    assert (status.st_mtime, status.st_mode & 0o777) == (1, 0o600)


@dataclass
class Sampled:
    id: str
    sample_submission: Path
    public_sample: Path | None


def test_a_sample_submission_may_be_in_a_7z_archive(tmp_path: Path) -> None:
    path = tmp_path / "sample.csv.7z"
    path.write_bytes(seven_zip_bytes({"deep/sample.csv": b"id,x\n1,2\n"}))
    competition = Sampled(id="c", sample_submission=tmp_path / "no.csv", public_sample=path)
    assert public_sample_bytes(competition) == b"id,x\n1,2\n"
