"""The index of a run: what it offers of a folder or an index, and how little a hostile agent or index can do."""

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.wheels import JSON, Index, Reply, make_wheel, serving

from mlebench.core.errors import PrerequisiteError
from mlebench.packages.cache import FileCache
from mlebench.packages.folder import folder_files, identity
from mlebench.packages.index_pages import MalformedPageError, read_page
from mlebench.packages.project import is_json_wanted
from mlebench.packages.server import PackageIndex
from mlebench.packages.sources import FolderSource, IndexSource

WHEEL = "melon-1.0-py3-none-any.whl"
FILE = f"/files/melon/{WHEEL}"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "wheels", "melon")


@pytest.fixture
def served() -> Iterator[Index]:
    with serving(Index()) as index:
        yield index


class Run:
    """What a run's agent sees of an index."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.usage: Any = None

    def of_index(self, index: Index, *paths: str, before: datetime | None = None, **options: Any) -> list[Any]:
        cache = FileCache(self.folder / "cache")
        return self.ask(lambda: IndexSource(f"{index.url}/simple", cache, before), paths, **options)

    def of_folder(self, folder: Path, *paths: str, **options: Any) -> list[Any]:
        return self.ask(lambda: FolderSource(folder, folder_files(folder)), paths, **options)

    def ask(self, source: Any, paths: Any, headers: Any = None, method: str = "GET", **options: Any) -> list[Any]:
        async def ask() -> list[Any]:
            app = PackageIndex(source(), self.folder / "packages.json", **options)
            transport = httpx2.ASGITransport(app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:3141") as client:
                answers = [await client.request(method, path, headers=headers or {"accept": JSON}) for path in paths]
            await app.close()
            self.usage = app.usage
            return answers

        return asyncio.run(ask())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def says(answer: Any) -> str:
    """What a refusal says: one line."""
    assert answer.status_code >= 400
    (line,) = answer.text.splitlines()
    return line


def names(answer: Any) -> list[str]:
    return [file["filename"] for file in answer.json()["files"]]


def test_a_folder_is_offered_in_json_and_html(run: Run, wheel: Path) -> None:
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (wheel.parent / "notes.txt").write_text("no package")
    (wheel.parent / "melon-2.0-py3-none-any.whl").symlink_to(wheel.name)
    listed, page, file, missing = run.of_folder(wheel.parent, "/simple/", "/simple/Melon/", FILE, "/simple/pear/")
    assert listed.json()["projects"] == [{"name": "melon"}]
    assert page.headers["content-type"] == JSON
    assert page.json() == {
        "meta": {"api-version": "1.1"},
        "name": "melon",
        "versions": ["1.0"],
        "files": [
            {
                "filename": WHEEL,
                "url": f"../..{FILE}",
                "hashes": {"sha256": sha256},
                "yanked": False,
                "core-metadata": False,
                "size": wheel.stat().st_size,
            }
        ],
    }
    assert file.content == wheel.read_bytes()
    assert says(missing) == "mlebench: the folder of packages has no pear"
    (fetched,) = run.usage.files
    assert (fetched.name, fetched.version, fetched.file, fetched.sha256) == ("melon", "1.0", WHEEL, sha256)
    (html,) = run.of_folder(wheel.parent, "/simple/melon/", headers={"accept": "text/html"})
    assert html.headers["content-type"] == "text/html"
    assert f'<a href="../..{FILE}#sha256={sha256}">{WHEEL}</a>' in html.text


@pytest.mark.parametrize(
    ("accept", "wants_json"),
    [
        ("", False),
        ("*/*", False),
        ("text/html", False),
        (f"{JSON}, text/html; q=0.01", True),  # pip's and uv's
        (f"text/html, {JSON};q=0.5", False),
        (f"{JSON};q=x", False),
        ("application/vnd.pypi.simple.latest+json", True),
    ],
)
def test_clients_choose_the_form(accept: str, wants_json: bool) -> None:
    assert is_json_wanted(accept) == wants_json


def test_the_identity_of_a_folder_depends_on_its_packages_alone(wheel: Path, tmp_path: Path) -> None:
    first = identity(folder_files(wheel.parent))
    (wheel.parent / "notes.txt").write_text("no package")
    os.utime(wheel, (0, 0))
    assert identity(folder_files(wheel.parent)) == first
    moved = wheel.rename(wheel.with_name("melon-1.1-py3-none-any.whl"))
    other = identity(folder_files(moved.parent))
    moved.write_bytes(moved.read_bytes() + b" ")
    assert len({first, other, identity(folder_files(moved.parent))}) == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(PrerequisiteError, match="has no wheels"):
        folder_files(tmp_path / "empty")


def test_a_file_of_a_folder_that_changed_is_refused(run: Run, wheel: Path) -> None:
    def source() -> FolderSource:
        files = folder_files(wheel.parent)
        wheel.write_bytes(wheel.read_bytes() + b" ")
        return FolderSource(wheel.parent, files)

    (answer,) = run.ask(source, [FILE])
    assert says(answer) == f"mlebench: {WHEEL} has changed since the run began"
    assert run.usage.refusals == {"file_changed": 1}
    assert not run.usage.files


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/etc/passwd",
        "/simple/../secret",
        "/simple/..%2f..%2fetc%2fpasswd/",
        "/simple/%2e%2e/",
        "/simple/-melon/",
        "/simple/" + "a" * 300 + "/",
        "/files/melon/../../packages.json",
        "/files/melon/..%2f..%2fpackages.json",
        "/files/melon/notes.txt",
        "/files/melon/melon-9.0-py3-none-any.whl",
        "/simple/melon/json/more",
        "http://example.org/simple/",
    ],
)
def test_nothing_else_can_be_reached(run: Run, wheel: Path, path: str) -> None:
    (wheel.parent / "notes.txt").write_text("secret")
    (wheel.parent.parent / "secret").write_text("secret")
    (answer,) = run.of_folder(wheel.parent, path)
    if path == "http://example.org/simple/":  # the host is not heeded: the answer is our own list
        assert answer.json()["projects"] == [{"name": "melon"}]
    else:
        assert answer.status_code == 404
        assert says(answer)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "CONNECT", "TRACE"])
def test_only_get_is_answered(run: Run, wheel: Path, method: str) -> None:
    (answer,) = run.of_folder(wheel.parent, FILE, method=method)
    assert says(answer) == "mlebench: the index of packages answers GET only"


def test_an_index_is_asked_once_and_its_files_are_shared_by_runs(run: Run, served: Index, wheel: Path) -> None:
    served.add(wheel)
    for _ in range(2):
        page, file, again = run.of_index(served, "/simple/melon/", FILE, FILE)
        assert names(page) == [WHEEL]
        assert file.content == again.content == wheel.read_bytes()
        assert [fetched.version for fetched in run.usage.files] == ["1.0"]
        assert run.usage.bytes == wheel.stat().st_size
    assert served.asked == ["/simple/melon/", f"/wheels/{WHEEL}", "/simple/melon/"]
    (listed,) = run.of_index(served, "/simple/")
    assert "are not listed" in says(listed)


def test_an_index_in_html_and_on_a_head_request(run: Run, served: Index, wheel: Path) -> None:
    served.add(wheel)
    served.is_html = True
    page, file = run.of_index(served, "/simple/melon/", FILE)
    assert (names(page), file.content) == ([WHEEL], wheel.read_bytes())
    assert page.json()["meta"] == {"api-version": "1.0"}  # later ones state sizes
    served.is_html = False
    (run.folder / "cache").rename(run.folder / "old")
    (head,) = run.of_index(served, FILE, method="HEAD")
    assert (head.headers["content-length"], head.content) == (str(wheel.stat().st_size), b"")
    assert not run.usage.files
    assert served.asked.count(f"/wheels/{WHEEL}") == 1


def test_metadata_is_fetched_alone(run: Run, served: Index, wheel: Path) -> None:
    metadata = b"Metadata-Version: 2.1\nName: melon\nVersion: 1.0\n"
    served.add(wheel, None, **{"core-metadata": {"sha256": hashlib.sha256(metadata).hexdigest()}})
    served.files[f"/wheels/{WHEEL}.metadata"] = metadata
    page, text = run.of_index(served, "/simple/melon/", f"{FILE}.metadata")
    assert page.json()["files"][0]["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}
    assert text.content == metadata
    assert not run.usage.files
    served.files[f"/wheels/{WHEEL}.metadata"] = b"another"
    (run.folder / "cache").rename(run.folder / "old")
    (text,) = run.of_index(served, f"{FILE}.metadata")
    assert "another hash" in says(text)


def test_only_what_was_uploaded_before_is_there(run: Run, served: Index, tmp_path: Path) -> None:
    for version, uploaded in (("1.0", "2024-05-31T23:59:59Z"), ("2.0", "2024-06-01T00:00:00Z"), ("3.0", None)):
        served.add(make_wheel(tmp_path / "wheels", "melon", version), uploaded)
    served.add(make_wheel(tmp_path / "wheels", "pear"))
    before = datetime(2024, 6, 1, tzinfo=UTC)
    page, hidden, late, pear = run.of_index(
        served, "/simple/melon/", "/files/melon/melon-3.0-py3-none-any.whl",
        "/files/melon/melon-2.0-py3-none-any.whl", "/simple/pear/", before=before,
    )  # fmt: skip
    assert names(page) == [WHEEL]
    assert page.json()["files"][0]["upload-time"] == "2024-05-31T23:59:59Z"
    assert says(hidden) == says(late) == "mlebench: the index lists no such file of melon"
    assert "states no upload times" in says(pear)


def test_upload_times_in_html() -> None:
    link = f'<a href="{{}}/{WHEEL}#sha256={"0" * 64}" data-upload-time="2024-0{{}}-01T00:00:00Z">x</a>'
    page = (link.format("a", 5) + link.format("b", 7)).encode()
    project = read_page("melon", "http://127.0.0.1/simple/melon/", "text/html", page, datetime(2024, 6, 1, tzinfo=UTC))
    assert [file.url for file in project.files] == [f"http://127.0.0.1/simple/melon/a/{WHEEL}"]


def test_only_allowed_names_leave_the_host(run: Run, served: Index, wheel: Path) -> None:
    served.add(wheel)
    listed, page, other, file = run.of_index(
        served, "/simple/", "/simple/melon/", "/simple/pear/", "/files/pear/pear-1.0-py3-none-any.whl", allow=["melon"]
    )
    assert listed.json()["projects"] == [{"name": "melon"}]
    assert names(page) == [WHEEL]
    assert says(other) == says(file) == "mlebench: pear is not among the packages that this run may have"
    assert served.asked == ["/simple/melon/"]
    assert run.usage.refusals == {"not_allowed": 2}


@pytest.mark.parametrize(
    "facts",
    [
        {"filename": "../../etc/melon-1.0-py3-none-any.whl"},
        {"filename": "pear-1.0-py3-none-any.whl"},
        {"filename": "melon-1.0.exe"},
        {"hashes": {}},
        {"hashes": {"md5": "0" * 32}},
        {"hashes": {"sha256": "../" + "0" * 61}},
        {"url": "file:///etc/passwd"},
        {"url": "http://user:word@127.0.0.1/x.whl"},
        {"url": "http://[x/melon.whl"},
        {"size": -1},
        {"requires-python": "x" * 1000},
    ],
)
def test_what_an_index_lists_oddly_is_not_offered(
    run: Run, served: Index, wheel: Path, tmp_path: Path, facts: dict[str, Any]
) -> None:
    served.add(wheel, **facts)
    good = make_wheel(tmp_path / "wheels", "melon", "2.0")
    served.entries["melon"] = [*served.entries["melon"]]
    served.add(good)
    (page,) = run.of_index(served, "/simple/melon/")
    assert names(page) == [good.name]


def test_an_index_over_tls_cannot_lead_to_one_without() -> None:
    sha256 = "0" * 64
    page = f'<a href="http://example.org/{WHEEL}#sha256={sha256}">x</a><a href="/a/{WHEEL}#sha256={sha256}">x</a>'
    project = read_page("melon", "https://example.org/simple/melon/", "text/html", page.encode(), None)
    assert [file.url for file in project.files] == [f"https://example.org/a/{WHEEL}"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"files": 1}', b'{"files": ' + b"[" * 100_000, b"\xff"])
def test_a_page_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedPageError):
        read_page("melon", "http://127.0.0.1/simple/melon/", JSON, content, None)


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"x" * (1 << 16))
    except OSError:
        return


def hanging(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.connection.settimeout(100)
    try:
        handler.connection.recv(1)  # until the other side has had enough
    except OSError:
        return


def no_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"nonsense\r\n\r\n")


ELSEWHERE = {"location": "http://127.0.0.2:9/"}
FAULTS = {
    "another host": (Reply(302, headers=ELSEWHERE), "redirects to another host"),
    "no address": (Reply(302, headers={"location": "http://[x"}), "redirects to"),
    "itself": (Reply(302, headers={"location": "?again"}), "redirects more than 3 times"),
    "an encoding": (Reply(body=b"\x1f\x8b", headers={"content-encoding": "gzip"}), "encoding that was not asked for"),
    "many encodings": (
        Reply(body=b"x", headers={"content-encoding": ", ".join(["gzip"] * 100)}),
        "encoding that was not asked for",
    ),
    "a fault": (Reply(503), "answers 503"),
    "no end": (Reply(act=endless), "more than"),
    "silence": (Reply(act=hanging), "gave no complete answer within 1 s"),
    "no HTTP": (Reply(act=no_http), "does not speak HTTP"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("of", ["page", "file"])
def test_a_hostile_index_is_refused_in_one_line(
    run: Run, served: Index, wheel: Path, monkeypatch: pytest.MonkeyPatch, of: str, fault: str
) -> None:
    reply, words = FAULTS[fault]
    served.add(wheel)
    path = "/simple/melon/" if of == "page" else f"/wheels/{WHEEL}"
    served.replies[path] = served.replies[f"{path}?again"] = reply
    if fault == "silence":
        monkeypatch.setattr(f"mlebench.packages.sources.{of.upper()}_SECONDS", 1.0)
    monkeypatch.setattr("mlebench.packages.sources.LARGEST_PAGE", 1 << 20)
    (answer,) = run.of_index(served, FILE)
    assert answer.status_code == 502
    assert words in says(answer)
    assert run.usage.refusals == {"index_failed": 1}
    assert not [path for path in (run.folder / "cache").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("content", "facts", "words"),
    [
        (b"longer than that", {"size": 4}, "with more than the 4 bytes"),
        (b"shorter", {"size": 100}, "serves 7 bytes of"),
        (b"another", {}, "another hash"),
    ],
)
def test_a_file_that_is_not_as_listed_is_refused(
    run: Run, served: Index, wheel: Path, content: bytes, facts: dict[str, int], words: str
) -> None:
    served.add(wheel, None, **(facts or {"size": len(content)}))
    served.files[f"/wheels/{WHEEL}"] = content
    (answer,) = run.of_index(served, FILE)
    assert words in says(answer)
    assert not [path for path in (run.folder / "cache").rglob("*") if path.is_file()]
    assert not run.usage.files


def test_a_redirect_on_the_same_host_is_followed(run: Run, served: Index, wheel: Path) -> None:
    served.add(wheel)
    served.replies["/simple/melon/"] = Reply(301, headers={"location": "/other/melon/"})
    served.replies["/other/melon/"] = Index(entries=served.entries).reply("/simple/melon/")
    (file,) = run.of_index(served, FILE)
    assert file.content == wheel.read_bytes()


@pytest.mark.parametrize("is_html", [False, True])
def test_a_run_may_fetch_so_many_bytes_and_no_more(run: Run, served: Index, tmp_path: Path, is_html: bool) -> None:
    served.is_html = is_html
    files = [make_wheel(tmp_path / "wheels", "melon", f"{number}.0") for number in range(3)]
    for file in files:
        served.add(file)
    size = files[0].stat().st_size
    paths = [f"/files/melon/{file.name}" for file in files]
    for _ in range(2):  # the second time from the cache, which makes no difference
        answers = run.of_index(served, *paths, paths[0], limit=2 * size + 10)
        assert [answer.status_code for answer in answers] == [200, 200, 403, 200]
        assert "--packages-limit" in says(answers[2])
        assert run.usage.bytes == 2 * size


def test_many_requests_are_cut_short(run: Run, wheel: Path) -> None:
    begun = time.monotonic()
    answers = run.of_folder(wheel.parent, *["/simple/melon/"] * 10_000)
    refused = [answer for answer in answers if answer.status_code == 429]
    minutes = (time.monotonic() - begun) / 60
    assert len(answers) - len(refused) <= 1200 * (1 + minutes)
    assert "may make 1200 requests a minute" in says(refused[0])
    assert run.usage.refusals == {"too_many_requests": len(refused)}


def test_names_files_and_requests_have_a_limit(
    run: Run, served: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench.packages.sources.MOST_NAMES", 2)
    monkeypatch.setattr("mlebench.packages.server.MOST_FILES", 1)
    for version in ("1.0", "2.0"):
        served.add(make_wheel(tmp_path / "wheels", "melon", version))
    paths = [FILE, "/files/melon/melon-2.0-py3-none-any.whl", "/simple/pear/", "/simple/fig/", "/simple/melon/"]
    answers = run.of_index(served, *paths)
    assert [answer.status_code for answer in answers] == [200, 403, 404, 403, 200]
    monkeypatch.setattr("mlebench.packages.client.MOST_REQUESTS", 1)
    answers = run.of_index(served, "/simple/melon/", "/simple/pear/")
    assert "has made 1 requests" in says(answers[1])


def test_a_damaged_file_in_the_cache_is_fetched_again(run: Run, served: Index, wheel: Path) -> None:
    served.add(wheel)
    run.of_index(served, FILE)
    (cached,) = [path for path in (run.folder / "cache").rglob("*") if path.is_file()]
    cached.write_bytes(b"damaged")
    (file,) = run.of_index(served, FILE)
    assert file.content == wheel.read_bytes()


def test_the_cache_forgets_what_was_not_used_for_longest(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache", 250)
    hashes = []
    for number in range(3):
        content = bytes([number]) * 100
        hashes.append(hashlib.sha256(content).hexdigest())
        assert cache.make_room(100)
        with cache.adding(hashes[-1]) as file:
            file.write(content)
        os.utime(tmp_path / "cache" / hashes[-1][:2] / hashes[-1], (number, number))
    kept = [cache.open(sha256) for sha256 in hashes]
    assert [file is not None for file in kept] == [False, True, True]
    for file in filter(None, kept):
        file.close()
    assert cache.size() == 200
    assert not cache.make_room(1 << 60)
