"""Bundles come from strangers: whatever is not exactly a bundle is refused, and nothing is written outside."""

import gzip
import io
import json
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.forged_bundles import changed, pack, repack, tar, unpack
from support.reference_form import write_reference_group
from support.run_fixtures import Mlebench

from mlebench.bundles import manifest as limits
from mlebench.bundles.archive import BundleRefusedError
from mlebench.bundles.make import make_bundle
from mlebench.bundles.reader import read_bundle
from mlebench.bundles.verify import verify_bundle
from mlebench.records.run_groups import Group
from mlebench.registry import Competition, Registry
from mlebench.run.regrade import grade_reference_group


def refused(path: Path) -> str:
    """Why a bundle is refused; it must be, and nothing but its scratch folder may be touched."""
    scratch = path.with_name("scratch")
    scratch.mkdir()
    before = sorted(path.parent.iterdir())
    with pytest.raises(BundleRefusedError) as fault:
        read_bundle(path, scratch)
    assert sorted(path.parent.iterdir()) == before
    shutil.rmtree(scratch)
    assert str(fault.value).isprintable()
    return str(fault.value)


def regular(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def members(bundle: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    return [(regular(name), data) for name, data in unpack(bundle).items()]


def test_a_tar_file_of_the_same_members_is_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    """So that the forgeries below are refused for what they are, not for how they are packed."""
    assert read_bundle(tar(tmp_path / "copy.tar.gz", members(bundle))).manifest == read_bundle(bundle).manifest


LINK = {
    "a symbolic link": (tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": (tarfile.LNKTYPE, "group.json"),
    "a device": (tarfile.CHRTYPE, ""),
    "a named pipe": (tarfile.FIFOTYPE, ""),
    "a folder": (tarfile.DIRTYPE, ""),
    "of a kind that bundles do not have": (tarfile.CONTTYPE, ""),
}


@pytest.mark.parametrize("what", LINK)
@pytest.mark.parametrize("place", [1, 4, None])
def test_members_that_are_not_regular_files(bundle: Path, tmp_path: Path, what: str, place: int | None) -> None:
    found = members(bundle)
    kind, link = LINK[what]
    found.insert(len(found) if place is None else place, (special("extra", kind, link), b""))
    assert f"is {what}" in refused(tar(tmp_path / "forged.tar.gz", found))


def test_a_link_in_place_of_a_listed_member(bundle: Path, tmp_path: Path) -> None:
    found = members(bundle)
    found[4] = (special(found[4][0].name, tarfile.SYMTYPE, "/etc/passwd"), b"")
    assert "is a symbolic link" in refused(tar(tmp_path / "forged.tar.gz", found))


def test_unlisted_duplicate_missing_and_misplaced_members(bundle: Path, tmp_path: Path) -> None:
    found = members(bundle)
    target = tmp_path / "forged.tar.gz"
    assert "extra.py is not in the manifest" in refused(tar(target, [*found, (regular("extra.py"), b"x")]))
    assert "is where the manifest has" in refused(tar(target, [*found[:3], (regular("extra.py"), b"x"), *found[3:]]))
    assert "or is there twice" in refused(tar(target, [*found, found[-1]]))
    assert "is where the manifest has" in refused(tar(target, [*found[:2], found[1], *found[2:]]))
    assert "is in the manifest but not in the archive" in refused(tar(target, found[:-1]))
    assert "is where the manifest has" in refused(tar(target, [*found[:3], found[4], found[3], *found[5:]]))
    assert "does not begin with manifest.json" in refused(tar(target, found[1:]))
    assert "does not begin with manifest.json" in refused(tar(target, [found[1], found[0], *found[2:]]))


def test_changed_content_size_or_owner(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "forged.tar.gz"
    found = members(bundle)
    data = found[3][1]
    found[3] = (found[3][0], data[:-2] + b" " + data[-1:])
    assert "sha256" in refused(tar(target, found))
    found[3] = (found[3][0], data + b" ")
    assert "the manifest states" in refused(tar(target, found))
    found = members(bundle)
    found[3][0].mode = 0o4755
    assert "is not as mlebench writes it" in refused(tar(target, found))


@pytest.mark.parametrize(
    "name",
    ["/etc/cron.d/x", "../x", "a/../../x", "a//b", "./x", "", "a/", "C:/x", "a\\..\\x", "a\nb", "\x1b[31m", "x" * 300],
)
def test_names_that_lead_out_or_cannot_be_shown(bundle: Path, tmp_path: Path, name: str) -> None:
    contents = unpack(bundle)
    head = json.loads(contents["manifest.json"])
    head["members"].append({"name": name, "size": 0, "sha256": "0" * 64})
    contents["manifest.json"] = json.dumps(head).encode()
    found = [(regular(id), data) for id, data in contents.items()]
    if name and len(name) < 100:
        found.append((regular(name), b""))
    why = refused(tar(tmp_path / "forged.tar.gz", found))
    assert "name" in why
    assert "\x1b" not in why


def test_a_member_inside_another(bundle: Path, tmp_path: Path) -> None:
    forged = repack(tmp_path / "forged.tar.gz", {**unpack(bundle), "group.json/x": b""})
    assert "is inside a member that is not a folder" in refused(forged)


def test_trailing_data(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "forged.tar.gz"
    genuine = bundle.read_bytes()
    for tail in (b"x", bytes(512), genuine, gzip.compress(b"x")):
        target.write_bytes(genuine + tail)
        assert "after its end" in refused(target)
    assert "after its end" in refused(tar(target, members(bundle), trailing=bytes(512)))
    for length in (0, 5, 10, 300, len(genuine) // 2, len(genuine) - 1):
        target.write_bytes(genuine[:length])
        assert "cut short" in refused(target) or "not a bundle" in refused(target)


def test_data_between_members(bundle: Path, tmp_path: Path) -> None:
    plain = bytearray(zlib.decompress(bundle.read_bytes(), 31))
    plain[512 + len(unpack(bundle)["manifest.json"])] = 1
    packed = bytearray(gzip.compress(plain))
    packed[:10] = bundle.read_bytes()[:10]
    target = tmp_path / "forged.tar.gz"
    target.write_bytes(packed)
    assert "there is data between its members" in refused(target)


def test_other_files_are_not_bundles(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "forged.tar.gz"
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in unpack(bundle).items():
            archive.writestr(name, data)
    assert "not a bundle" in refused(target)
    target.write_bytes(gzip.compress(zlib.decompress(bundle.read_bytes(), 31), mtime=1))
    assert "packed it again" in refused(target)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("manifest.json")
        info.pax_headers = {"path": "../../outside"}
        archive.addfile(info)
    packed = bytearray(gzip.compress(buffer.getvalue()))
    packed[:10] = bundle.read_bytes()[:10]
    target.write_bytes(packed)
    assert "only regular files" in refused(target)


def test_bombs_are_refused_before_they_are_unpacked(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "forged.tar.gz"
    contents = unpack(bundle)

    def promised(size: int, count: int = 1) -> str:
        extra = [{"name": f"bomb{number}", "size": size, "sha256": "0" * 64} for number in range(count)]
        head = json.loads(contents["manifest.json"])
        head["members"] += extra
        return refused(pack(target, {**contents, "manifest.json": json.dumps(head).encode()}))

    assert "impossible size" in promised(1 << 40)
    assert "must be a whole number >= 0" in promised(-1)
    assert "would unpack to" in promised(5 << 30, 20)
    assert "no genuine bundle" in promised(1 << 30)
    assert "members; at most" in promised(0, limits.MOST_MEMBERS)
    assert "not in the archive" in promised(1 << 20)
    monkeypatch.setattr("mlebench.bundles.reader.LARGEST_MANIFEST", 1000)
    assert "manifest.json has" in refused(bundle)


def test_a_manifest_header_that_promises_much_is_not_believed(tmp_path: Path) -> None:
    info = regular("manifest.json")
    info.size = 4 << 30
    target = tmp_path / "forged.tar.gz"
    packed = bytearray(gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1 << 20)))
    packed[:10] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    target.write_bytes(packed)
    assert "bytes; at most" in refused(target)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"schema": 2, "mlebench": "\\u001b[31m\\n"}',
        b'{"schema": 1, "group": "x"}',
        b'{"group": "a", "group": "b"}',
        b'{"group": NaN}',
        b"\xff\xfe",
        b'{"group": "x", "created_at": "x", "competitions": [], "members": {}}',
        b'{"group": "x", "created_at": "x", "competitions": [], "members": [1]}',
        b'{"group": "x", "created_at": "x", "competitions": [], "members": [{"name": 1, "size": 1, "sha256": ""}]}',
        b'{"group": "x", "created_at": "x", "competitions": [], "members": [{"name": "a", "size": 1e999}]}',
        b'{"group": "x", "created_at": "x", "competitions": [], "members": []}',
    ],
)
def test_manifests_that_make_no_sense(bundle: Path, tmp_path: Path, data: bytes) -> None:
    refused(pack(tmp_path / "forged.tar.gz", {**unpack(bundle), "manifest.json": data}))


Change = Callable[[dict[str, Any]], Any]


def with_report(**values: Any) -> Change:
    return lambda record: record | {"report": record["report"] | values}


@pytest.mark.parametrize(
    "change",
    [
        lambda record: [record],
        lambda record: record | {"competition": ["x"]},
        lambda record: record | {"competition": "another"},
        lambda record: record | {"run_id": "../../x"},
        lambda record: record | {"seed": 7},
        lambda record: record | {"seed": True},
        lambda record: record | {"seed": None},
        lambda record: record | {"state": "running"},
        lambda record: record | {"seconds": "long"},
        lambda record: record | {"report": {}},
        with_report(score="high"),
        with_report(score=10**400),
        with_report(gold_medal=1),
        with_report(competition_id="another"),
        with_report(gold_threshold=None),
    ],
)
def test_records_of_runs_that_make_no_sense(bundle: Path, record: str, tmp_path: Path, change: Change) -> None:
    refused(changed(bundle, tmp_path / "forged.tar.gz", record, change))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record | {"agent": {}},
        lambda record: record | {"agent": record["agent"] | {"name": "mine [regraded]"}},
        lambda record: record | {"id": "another"},
        lambda record: record | {"profile": "v9"},
        lambda record: record | {"limits": {"seconds": "long"}},
        lambda record: record | {"twin": False},
        lambda record: record | {"twin": None},
        lambda record: record | {"origin": "reference"},
        lambda record: record | {"origin": "reference", "agent": record["agent"] | {"identity": None}},
        lambda record: record | {"seeds": 10**12},
        lambda record: record | {"competitions": record["competitions"] * 2},
    ],
)
def test_records_of_groups_that_make_no_sense(bundle: Path, tmp_path: Path, change: Change) -> None:
    refused(changed(bundle, tmp_path / "forged.tar.gz", "group.json", change))


def test_a_grading_report_that_contradicts_the_runs(bundle: Path, tmp_path: Path) -> None:
    (name,) = (name for name in unpack(bundle) if name.endswith("_grading_report.json"))

    def better(report: dict[str, Any]) -> dict[str, Any]:
        report["competition_reports"][0]["score"] = 0.999
        return report

    for change in (better, lambda report: report | {"competition_reports": [7]}, lambda report: {}):
        assert "grading_report.json" in refused(changed(bundle, tmp_path / "forged.tar.gz", name, change))
    second = repack(tmp_path / "forged.tar.gz", {**unpack(bundle), "2_grading_report.json": b"{}"})
    assert "several grading reports" in refused(second)


def test_runs_cannot_be_withheld_or_counted_twice(bundle: Path, record: str, tmp_path: Path) -> None:
    contents = unpack(bundle)
    fewer = {name: data for name, data in contents.items() if "_run1/" not in name}
    assert "planned with 3 runs" in refused(repack(tmp_path / "forged.tar.gz", fewer))
    again = json.dumps(json.loads(contents[record]) | {"run_id": "run9"}).encode()
    more = {**contents, record.replace("_run0/", "_run9/"): again}
    assert "planned with 3 runs" in refused(repack(tmp_path / "forged.tar.gz", more))


def test_runs_of_the_reference_cannot_be_withheld_or_added(titanic: Competition, tmp_path: Path) -> None:
    sample = titanic.sample_submission.read_bytes()
    root = write_reference_group(tmp_path / "runs", [(titanic.id, sample)] * 2, ids=["1", "2"])
    grade_reference_group(Group.read(root), Registry(titanic.paths.data_dir))
    make_bundle(Group.read(root), bundle := tmp_path / "genuine.tar.gz")
    contents, forged = unpack(bundle), tmp_path / "forged.tar.gz"
    refused(changed(bundle, forged, "metadata.json", lambda listed: listed | {"runs": {}}))
    refused(changed(bundle, forged, "metadata.json", lambda listed: listed | {"runs": [*listed["runs"]]}))
    refused(changed(bundle, forged, "group.json", lambda record: record | {"origin": "somebody"}))
    refused(changed(bundle, forged, "group.json", lambda record: record | {"origin": None}))
    refused(changed(bundle, forged, "group.json", lambda record: record | {"competitions": ["another"]}))
    refused(repack(forged, {name: data for name, data in contents.items() if name != "metadata.json"}))
    fewer = {name: data for name, data in contents.items() if not name.startswith(f"{titanic.id}_2/")}
    assert "other runs than its metadata.json lists" in refused(repack(forged, fewer))


def test_no_name_in_a_bundle_becomes_a_path(bundle: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    read_bundle(bundle, scratch)
    assert {path.name for path in scratch.rglob("*") if path.is_file()} == {"submission.csv"}
    assert all(path.name.isdigit() for path in scratch.iterdir())


EDIT = st.tuples(
    st.sampled_from(["set", "drop", "insert", "swap"]), st.floats(0, 1), st.binary(min_size=1, max_size=40)
)


def edited(data: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    for what, where, piece in edits:
        place = int(where * len(data))
        if what == "set":
            data = data[:place] + piece + data[place + len(piece) :]
        elif what == "drop":
            data = data[:place] + data[place + len(piece) :]
        elif what == "insert":
            data = data[:place] + piece + data[place:]
        else:
            block = place // 512 * 512
            data = data[:block] + data[block + 512 : block + 1024] + data[block : block + 512] + data[block + 1024 :]
    return data


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.lists(EDIT, min_size=1, max_size=4),
    layer=st.sampled_from(["packed", "tar", "contents"]),
    which=st.integers(0),
)
def test_mutated_bundles_are_refused_or_harmless(
    bundle: Path, tmp_path: Path, edits: list[tuple[str, float, bytes]], layer: str, which: int
) -> None:
    """Only a refusal may be raised, and only submissions may be written, in the scratch folder."""
    target, scratch = tmp_path / "mutated.tar.gz", tmp_path / "scratch"
    if layer == "packed":
        target.write_bytes(edited(bundle.read_bytes(), edits))
    elif layer == "tar":
        plain = edited(zlib.decompress(bundle.read_bytes(), 31), edits)
        packed = bytearray(gzip.compress(plain))
        packed[:10] = bundle.read_bytes()[:10]
        target.write_bytes(packed)
    else:
        contents = unpack(bundle)
        name = list(contents)[which % len(contents)]
        contents[name] = edited(contents[name], edits)
        (pack if name == "manifest.json" else repack)(target, contents)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir() if path != scratch}
    why = ""
    try:
        read_bundle(target, scratch)
    except BundleRefusedError as error:
        why = str(error)
    assert why.isprintable()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir() if path != scratch} == before
    assert {path.name for path in scratch.rglob("*") if not path.is_dir()} <= {"submission.csv"}


def test_the_command_refuses_in_one_line(bundle: Path, mlebench: Mlebench, tmp_path: Path) -> None:
    found = members(bundle)
    forged = tar(tmp_path / "forged.tar.gz", [*found, (special("x", tarfile.SYMTYPE, "/etc/passwd"), b"")])
    done = mlebench("bundle", "verify", str(forged), code=1)
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert done.stderr.startswith("Error: ")
    with pytest.raises(BundleRefusedError):
        verify_bundle(forged, tmp_path)
