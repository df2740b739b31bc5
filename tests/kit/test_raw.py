"""Raw is only read; outputs are reproducible and written once."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlebench.core.errors import CompetitionError, NotPreparedError, PrerequisiteError
from mlebench.kit import Output, Raw, Table, encode_json, md5_of, open_raw, public_sample, split_rows
from mlebench.kit.outputs import finish, run_prepare
from mlebench.kit.twins import zip_bytes

pytestmark = pytest.mark.bytes

FILES = {
    "train.csv": b"id,label\n1,a\n2,b\n3,a\n4,\n",
    "images/1.png": b"one",
    "images/2.png": b"two",
    "notes.json": '{"é": [1, null]}'.encode(),
    "words.txt": "a\r\nb\n\nc é".encode(),
    "inner.zip": zip_bytes({"deep/x.csv": b"n\n007\n", "deeper.zip": zip_bytes({"y.txt": b"why"})}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "data.zip"
    path.write_bytes(zip_bytes(FILES))
    return path


@pytest.fixture(params=["folder", "archive"])
def source(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _state(path: Path) -> dict[str, Any]:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {str(file): (file.stat().st_mtime_ns, file.is_file() and file.read_bytes()) for file in files}


def test_requested_types_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with open_raw(tmp_path, tmp_path) as raw:
        table = raw.table("a.csv", dtype={"a": np.int32})
        assert [table[name].dtype for name in "ab"] == [np.int32, np.int64]


def test_words_for_a_missing_value_stay_in_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\nNA,NA\n,1\n007,2\n")
    with open_raw(tmp_path, tmp_path) as raw:
        table = raw.table("a.csv", text=["a"])
        assert table["a"].tolist() == ["NA", "", "007"]
        assert table["b"][1:].tolist() == [1, 2]
        assert np.isnan(table["b"][0])


def test_raw_data_reads_the_same_from_a_folder_and_an_archive(source: Path) -> None:
    with open_raw(source) as raw:
        assert [file.name for file in raw.files("images/*.png")] == ["images/1.png", "images/2.png"]
        assert [(file.path.stem, file.read()) for file in raw.files("images/*")] == [("1", b"one"), ("2", b"two")]
        assert raw.table("train.csv")["id"].tolist() == [1, 2, 3, 4]
        assert raw.json("notes.json") == {"é": [1, None]}
        assert raw.lines("words.txt") == ["a", "b", "", "c é"]
        assert raw.exists("train.csv")
        assert not raw.exists("test.csv")


def test_archives_inside_archives_are_unpacked_once(source: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with open_raw(source, scratch) as raw:
        for _ in range(2):
            inner = raw.archive("inner.zip")
            assert inner.table("deep/x.csv", dtype={"n": str})["n"].tolist() == ["007"]
            assert inner.archive("deeper.zip").file("y.txt").read() == b"why"
        unpacked = [path for path in scratch.rglob("*") if path.is_file()]
        assert len(unpacked) == (1 if source.is_dir() else 2)
    assert list(scratch.iterdir()) == [], "scratch is cleared in the end"


def test_missing_raw_files_are_named(source: Path) -> None:
    with open_raw(source) as raw:
        for use in (raw.archive, raw.open, raw.json, raw.table, raw.lines, lambda name: raw.file(name).read()):
            with pytest.raises(PrerequisiteError, match=r"lacks gone\.zip"):
                use("gone.zip")
        with pytest.raises(PrerequisiteError, match="cannot be read"):
            raw.archive("train.csv")


def test_missing_raw_data_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no raw data"), open_raw(tmp_path / "nowhere"):
        pass


def test_absolute_sizes_are_themselves_on_real_data_and_the_twins_on_a_twin(folder: Path) -> None:
    with open_raw(folder) as raw:
        assert raw.scaled(9914) == 9914
    (folder.parent / "twin.json").write_text(json.dumps({"scaled": {"9914": 12}}), encoding="utf-8")
    with open_raw(folder) as raw:
        assert raw.scaled(9914) == 12
        with pytest.raises(CompetitionError, match="does not say what stands for 1"):
            raw.scaled(1)


def _prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_rows(raw.table("train.csv"), test_size=0.5, seed=0)
    public.write("train.csv", train)
    public.write("deep/test.csv", test.drop("label"))
    public.write_json("facts.json", {"rows": len(test)})
    public.place_each((file, f"pictures/{file.path.name}") for file in raw.files("images/*"))
    public.place(raw.archive("inner.zip").file("deep/x.csv"), "x.csv")
    public.pack("all.zip", {"train.csv": train, "1.png": raw.file("images/1.png"), "note": b"hello"})
    public.mkdir("empty/folder")
    private.write("test.csv", test)


def test_prepare_gives_the_same_from_both_and_leaves_raw_alone(folder: Path, archive: Path, tmp_path: Path) -> None:
    prepared = {}
    for source in (folder, archive):
        before = _state(source)
        target = tmp_path / f"from-{source.name}"
        facts = dict(run_prepare(_prepare, source, target / "public", target / "private"))
        assert _state(source) == before
        prepared[source] = _contents(target)
        assert {name: known["size"] for name, known in facts.items()} == {
            name: len(content) for name, content in prepared[source].items()
        }
        assert {name: known["md5"] for name, known in facts.items() if "md5" in known} == {
            name: hashlib.md5(content).hexdigest()
            for name, content in prepared[source].items()
            if "pictures" not in name and not name.endswith("x.csv")
        }
        assert {path.stat().st_mode & 0o777 for path in target.rglob("*") if path.is_file()} == {0o644}
        assert (target / "public/empty/folder").is_dir()
        assert sorted(path.name for path in target.iterdir()) == ["private", "public"], "no scratch is left behind"
    assert prepared[folder] == prepared[archive]
    assert prepared[folder]["public/pictures/2.png"] == b"two"
    assert prepared[folder]["public/x.csv"] == b"n\n007\n"


def test_files_appear_only_when_everything_is_known(folder: Path, tmp_path: Path) -> None:
    output = Output(tmp_path / "public")
    with open_raw(folder) as raw:
        output.place(raw.file("images/1.png"), "deep/1.png")
        output.write("table.csv", Table.from_columns({"n": [1]}))
        output.write_json("facts.json", 1)
        output.pack("all.zip", {"a": b"a"})
        assert list((tmp_path / "public").iterdir()) == []
        finish([output], tmp_path)
    assert (tmp_path / "public/deep/1.png").samefile(folder / "images/1.png")
    assert sorted(output.plan.written) == ["all.zip", "facts.json", "table.csv"], "a placed file is not one we wrote"
    assert sorted(_contents(tmp_path / "public")) == ["all.zip", "deep/1.png", "facts.json", "table.csv"]


@pytest.mark.parametrize("first", ["write", "write_json", "place", "pack"])
@pytest.mark.parametrize("second", ["write", "write_json", "place", "pack"])
def test_a_name_is_written_once(folder: Path, tmp_path: Path, first: str, second: str) -> None:
    output = Output(tmp_path / "public")
    with open_raw(folder) as raw:
        uses = {
            "write": lambda: output.write("a/b", Table.from_columns({"n": [1]})),
            "write_json": lambda: output.write_json("a/b", 1),
            "place": lambda: output.place(raw.file("images/1.png"), "a/b"),
            "pack": lambda: output.pack("a/b", {}),
        }
        uses[first]()

        def go_on() -> None:
            uses[second]()
            finish([output], tmp_path)

        with pytest.raises(ValueError, match="a/b is written twice"):
            go_on()
    assert list((tmp_path / "public").iterdir()) == []


@pytest.mark.parametrize("name", ["../x.csv", "/x.csv", "a/../../x.csv", "", "."])
def test_names_outside_the_folder_are_refused(folder: Path, tmp_path: Path, name: str) -> None:
    output = Output(tmp_path / "public")
    with open_raw(folder) as raw:
        for use in (
            lambda: output.write(name, Table.from_columns({"n": [1]})),
            lambda: output.write_json(name, 1),
            lambda: output.place(raw.file("train.csv"), name),
            lambda: output.pack(name, {}),
            lambda: output.mkdir(name),
        ):
            with pytest.raises(ValueError, match="not a name inside"):
                use()


def test_a_pack_is_the_same_whenever_it_is_made(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table.from_columns({"n": [1, 2], "t": ["a", None]})
    packs = []
    for place, time in enumerate((0.0, 2e9)):
        monkeypatch.setattr("time.time", lambda time=time: time)
        output = Output(tmp_path / f"{place}")
        with open_raw(folder) as raw:
            members = {"b.csv": table, "a/1.png": raw.file("images/1.png"), "c": b"\x00"}
            order = sorted(members, reverse=bool(place))
            output.pack("all.zip", {name: members[name] for name in order}, deflate=True, quoting="nonnumeric")
            finish([output], tmp_path)
        packs.append((tmp_path / f"{place}/all.zip").read_bytes())
        assert output.plan.written == {"all.zip": md5_of(tmp_path / f"{place}/all.zip")}
    assert packs[0] == packs[1]
    with zipfile.ZipFile(io.BytesIO(packs[0])) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "a/1.png": b"one",
            "b.csv": b'"n","t"\n1,"a"\n2,""\n',
            "c": b"\x00",
        }
        assert archive.namelist() == ["a/1.png", "b.csv", "c"]


@pytest.mark.parametrize(("deflate", "method"), [(False, zipfile.ZIP_STORED), (True, zipfile.ZIP_DEFLATED)])
def test_packs_are_stored_unless_asked_otherwise(tmp_path: Path, deflate: bool, method: int) -> None:
    output = Output(tmp_path)
    output.pack("all.zip", {"a": b"a" * 999}, deflate=deflate)
    finish([output], tmp_path)
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert [info.compress_type for info in archive.infolist()] == [method]


@pytest.mark.parametrize("style", [{}, {"indent": 4}, {"indent": 4, "sort_keys": True}], ids=str)
def test_json_is_what_python_prints(tmp_path: Path, style: dict[str, Any]) -> None:
    value = {"b": [1, 2.5, None, True, float("nan")], "a": "é/🙂"}
    text = io.StringIO()
    json.dump(value, text, **style)
    assert encode_json(value, **style) == text.getvalue().encode()
    output = Output(tmp_path)
    output.write_json("v.json", value, **style)
    finish([output], tmp_path)
    assert (tmp_path / "v.json").read_bytes() == text.getvalue().encode()
    assert output.plan.written["v.json"] == hashlib.md5(text.getvalue().encode()).hexdigest()


def test_written_tables_are_hashed_as_they_are_written(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.write("big.csv", Table.from_columns({"n": np.arange(50_000), "t": ["é"] * 50_000}))
    finish([output], tmp_path)
    assert output.plan.written["big.csv"] == md5_of(tmp_path / "big.csv")


class _Sampled:
    """The parts of a competition that its sample needs."""

    id = "some-competition"

    def __init__(self, sample_submission: Path, public_sample: Path | None = None):
        self.sample_submission = sample_submission
        self.public_sample = public_sample


def test_a_sample_is_found_as_a_file_or_inside_an_archive(tmp_path: Path) -> None:
    plain, packed = tmp_path / "sample.csv", tmp_path / "sample.zip"
    plain.write_bytes(b"id,y\n1,0.5\n")
    packed.write_bytes(zip_bytes({"deep/sample.csv": b"id,y\n2,0.25\n", "readme.txt": b""}))
    assert public_sample(_Sampled(plain)).to_dict("list") == {"id": [1], "y": [0.5]}
    assert public_sample(_Sampled(plain, packed)).to_dict("list") == {"id": [2], "y": [0.25]}


def test_a_missing_sample_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotPreparedError, match=r"some-competition is not prepared: there is no .*sample\.csv"):
        public_sample(_Sampled(tmp_path / "sample.csv"))
