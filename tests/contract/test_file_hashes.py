"""Archives are compared by their contents."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from mlebench.contract.file_hashes import file_hashes, raw_index
from mlebench.kit.twins import tar_gz_bytes, zip_bytes

pytestmark = pytest.mark.bytes

MEMBERS = {"b/2.jpg": b"two", "a.txt": b"one"}
PLAIN = gzip.decompress(tar_gz_bytes(MEMBERS))


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.zip", zip_bytes(MEMBERS)), ("x.tar", PLAIN), ("x.tar.gz", tar_gz_bytes(MEMBERS)), ("x.tar.gz", PLAIN)],
)
def test_an_archive_is_its_members_which_may_be_raw_files(tmp_path: Path, name: str, content: bytes) -> None:
    for folder in ("raw", "other", "prepared"):
        (tmp_path / folder).mkdir()
    (tmp_path / "raw" / name).write_bytes(content)
    (tmp_path / "other/1.jpg").write_bytes(b"two")
    (tmp_path / "prepared" / name).write_bytes(content)
    (tmp_path / "prepared/c.jpg").write_bytes(b"two")

    raw, other = raw_index(tmp_path / "raw"), raw_index(tmp_path / "other")
    assert file_hashes(tmp_path / "prepared", raw) == {name: f"raw: {name}", "c.jpg": f"raw: {name}!b/2.jpg"}
    assert file_hashes(tmp_path / "prepared", other)[name] == {
        "a.txt": "f97c5d29941bfb1b2fdab0874906ab82",
        "b/2.jpg": "raw: 1.jpg",
    }


def test_folders_in_a_tar_are_members_and_other_compressed_files_are_none(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(mode="w", fileobj=stream) as archive:
        folder = tarfile.TarInfo("a")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    (tmp_path / "x.tar").write_bytes(stream.getvalue())
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n", mtime=0))
    prints = file_hashes(tmp_path, {})
    assert list(prints["x.tar"]) == ["a/"]
    assert isinstance(prints["y.csv.gz"], str)
