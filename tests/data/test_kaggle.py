"""Data from Kaggle: the real client, against a server on loopback that can misbehave."""

import errno
import io
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.fake_kaggle import BASIC, BEARER, KEY, TOKEN, USER, FakeKaggle, Fault
from support.kaggle_fixtures import Waits, archive_of
from support.progress import RecordingProgress
from support.waiting import wait_until

from mlebench.cli.dev import command as dev
from mlebench.cli.doctor import _kaggle as doctor_line
from mlebench.core.errors import PrerequisiteError
from mlebench.data import download_and_prepare_dataset, download_dataset, ensure_leaderboard_exists
from mlebench.data import kaggle as module
from mlebench.data.batch import prepare_many
from mlebench.data.kaggle import KaggleSource, original_description, preflight
from mlebench.data.kaggle_api import RulesNotAcceptedError, config_folder, connect
from mlebench.data.pipeline import Options, prepare
from mlebench.data.preflight import check_all
from mlebench.data.sources import TwinSource
from mlebench.engine.progress import Progress
from mlebench.registry import Competition, Registry
from mlebench.utils import authenticate_kaggle_api

ID, OTHER, UNKNOWN = "spaceship-titanic", "leaf-classification", "aerial-cactus-identification"
pytestmark = pytest.mark.usefixtures("kaggle")
CUT = 1_000_000  # bytes; several times what is read at once, but less than the archive


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    return Registry(tmp_path / "data").get_competition(ID)


def _fetch(competition: Competition) -> tuple[Path, Waits]:
    waits = Waits()
    return KaggleSource(sleep=waits).fetch(competition), waits


def _files(competition: Competition) -> list[str]:
    return sorted(path.name for path in competition.paths.root.iterdir())


def _assert_whole(competition: Competition, kaggle: FakeKaggle) -> None:
    assert competition.paths.archive.read_bytes() == kaggle.archive
    assert _files(competition) == [f"{ID}.zip", f"{ID}.zip.json"]


@pytest.mark.usefixtures("login")
class TestDownload:
    def test_a_good_download(
        self, kaggle: FakeKaggle, competition: Competition, capfd: pytest.CaptureFixture[str]
    ) -> None:
        progress, source = RecordingProgress(), KaggleSource()
        assert source.fetch(competition, progress) == competition.paths.archive
        seen = [(done, total) for stage, done, total in progress.events if stage == "downloading"]
        _assert_whole(competition, kaggle)
        assert source.describe(competition.paths.archive).kind == "kaggle"
        assert not source.twin
        size = len(kaggle.archive)
        assert (seen[0], seen[-1]) == ((0, size), (size, size))
        assert seen == sorted(seen)
        assert capfd.readouterr().out == ""

    def test_to_a_clients_own_folder(self, kaggle: FakeKaggle, tmp_path: Path) -> None:
        folder = tmp_path / "somewhere"
        for force in (False, False, True):
            assert download_dataset(ID, folder, quiet=True, force=force) == folder / f"{ID}.zip"
            assert (folder / f"{ID}.zip").read_bytes() == kaggle.archive
        assert len(kaggle.called("DownloadDataFiles")) == 2

    def test_the_storage_gets_no_login(self, kaggle: FakeKaggle, competition: Competition) -> None:
        _fetch(competition)
        assert kaggle.called("DownloadDataFiles")[0].headers["Authorization"] == BASIC
        assert "Authorization" not in kaggle.called("storage")[0].headers

    def test_a_rate_limit_is_waited_out_as_requested(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["DownloadDataFiles"] = [Fault(429, headers={"Retry-After": "77"})]
        assert _fetch(competition)[1] == [77.0]
        _assert_whole(competition, kaggle)

    def test_a_rate_limit_until_a_date(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(429, headers={"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"})]
        assert _fetch(competition)[1] == [3600.0]

    def test_server_errors_pass(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults = {"DownloadDataFiles": [Fault(500), Fault(503)], "storage": [Fault(502), Fault(403)]}
        waits = _fetch(competition)[1]
        assert len(waits) == 4
        assert all(2**n / 2 <= wait <= 2**n for n, wait in enumerate(waits, start=1))
        _assert_whole(competition, kaggle)

    def test_endless_server_errors(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["DownloadDataFiles"] = [Fault(503, "down for repairs")] * 99
        waits = Waits()
        with pytest.raises(PrerequisiteError, match=r"cannot be reached, try again later.*down for repairs"):
            KaggleSource(sleep=waits).fetch(competition)
        assert len(waits) == 5
        assert len(kaggle.called("DownloadDataFiles")) == 6
        assert not competition.paths.archive.exists()

    def test_links_to_the_storage_are_not_shown(
        self, kaggle: FakeKaggle, competition: Competition, caplog: pytest.LogCaptureFixture
    ) -> None:
        kaggle.faults["storage"] = [Fault(503)] * 99
        with pytest.raises(PrerequisiteError) as raised:
            KaggleSource(sleep=Waits()).fetch(competition)
        assert "secret" not in f"{raised.value}{caplog.text}"
        assert "503" in caplog.text

    def test_a_cut_connection_is_continued(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=CUT)]
        progress = RecordingProgress()
        KaggleSource(sleep=Waits()).fetch(competition, progress)
        seen = [done for _, done, _ in progress.events]
        _assert_whole(competition, kaggle)
        _, second = kaggle.called("storage")
        kept = int(second.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        assert 0 < kept <= CUT
        assert (second.status, second.sent) == (206, len(kaggle.archive) - kept)
        assert seen == sorted(seen)

    def test_each_new_byte_resets_the_count_of_attempts(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=300_000)] * 8
        assert len(_fetch(competition)[1]) == 8
        _assert_whole(competition, kaggle)

    def test_a_server_that_ignores_ranges(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=CUT), Fault(ignores_range=True)]
        _fetch(competition)
        assert [call.status for call in kaggle.called("storage")] == [200, 200]
        _assert_whole(competition, kaggle)

    def test_a_server_that_ignores_ranges_and_always_cuts(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=CUT, ignores_range=True)] * 99
        waits = Waits()
        with pytest.raises(PrerequisiteError, match="try again later"):
            KaggleSource(sleep=waits).fetch(competition)
        # How much of what was sent before a cut arrives is random, and an attempt that brought more than any before
        # counts.
        assert 5 <= len(waits) < 40

    def test_a_changed_archive_is_downloaded_again(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=CUT)]

        def change(_: float) -> None:
            kaggle.archive, kaggle.tag = archive_of(1), '"two"'

        KaggleSource(sleep=change).fetch(competition)
        _assert_whole(competition, kaggle)

    def test_a_shrunk_archive_is_downloaded_again(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=CUT)]

        def change(_: float) -> None:
            buffer = io.BytesIO()
            zipfile.ZipFile(buffer, "w").close()
            kaggle.archive, kaggle.tag = buffer.getvalue(), '"two"'

        KaggleSource(sleep=change).fetch(competition)
        assert 416 in [call.status for call in kaggle.called("storage")]
        _assert_whole(competition, kaggle)

    def test_anything_but_an_archive_is_refused(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.archive = b"<html>"
        with pytest.raises(PrerequisiteError, match="not a zip archive"):
            _fetch(competition)
        assert _files(competition) == []

    def test_a_part_of_unknown_origin_is_not_trusted(self, kaggle: FakeKaggle, competition: Competition) -> None:
        competition.paths.root.mkdir(parents=True)
        competition.paths.archive_part.write_bytes(b"?" * CUT)
        assert _fetch(competition)[1] == []
        assert "Range" not in kaggle.called("storage")[0].headers
        _assert_whole(competition, kaggle)

    def test_a_part_that_lacked_only_its_name(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=CUT)]
        with pytest.raises(KeyboardInterrupt):
            KaggleSource(sleep=_interrupt).fetch(competition)
        competition.paths.archive_part.write_bytes(kaggle.archive)
        asked = len(kaggle.calls)
        _fetch(competition)
        assert len(kaggle.calls) == asked
        _assert_whole(competition, kaggle)

    def test_lack_of_space_is_noticed_before_a_byte_is_written(
        self, competition: Competition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
        with pytest.raises(PrerequisiteError, match="the disk is full"):
            _fetch(competition)
        assert not competition.paths.archive_part.exists()

    def test_a_disk_that_fills_up(
        self, kaggle: FakeKaggle, competition: Competition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(module, "_append", full)
            with pytest.raises(PrerequisiteError, match=r"the disk is full.*continues where it stopped"):
                _fetch(competition)
        _fetch(competition)
        _assert_whole(competition, kaggle)

    def test_a_killed_process_is_continued(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["storage"] = [Fault(cut=CUT, stall=True)]
        program = f"""
from kagglesdk import kaggle_env
kaggle_env._env_to_endpoint.update(dict.fromkeys(kaggle_env._env_to_endpoint, {kaggle.url!r}))
from mlebench.data.kaggle import KaggleSource
from mlebench.registry import Registry
KaggleSource().fetch(Registry({str(competition.paths.data_dir)!r}).get_competition({ID!r}))
"""
        process = subprocess.Popen([sys.executable, "-c", program])
        part = competition.paths.archive_part
        try:
            wait_until(lambda: part.is_file() and part.stat().st_size, "a part is downloaded", process=process)
        finally:
            process.kill()
            process.wait()
        kept = part.stat().st_size
        assert 0 < kept <= CUT
        assert not competition.paths.archive.exists()
        _fetch(competition)
        _assert_whole(competition, kaggle)
        assert kaggle.called("storage")[-1].sent == len(kaggle.archive) - kept


def _interrupt(_: float) -> None:
    raise KeyboardInterrupt


class TestWithoutDownload:
    @pytest.mark.parametrize("kind", ["archive", "raw"])
    def test_data_on_disk_needs_no_login_and_no_client(
        self, kind: str, kaggle: FakeKaggle, competition: Competition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = competition.paths
        where.raw.mkdir(parents=True)
        if kind == "raw":
            (where.raw / "train.csv").write_text("a\n1\n")
        else:
            where.archive.write_bytes(kaggle.archive)
        monkeypatch.setitem(sys.modules, "kaggle", None)
        assert KaggleSource().fetch(competition) == getattr(where, kind)
        assert kaggle.calls == []

    def test_without_a_client_that_works(self, competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        monkeypatch.setitem(sys.modules, "kaggle.api.kaggle_api_extended", None)
        with pytest.raises(PrerequisiteError, match="pip install kaggle six"):
            KaggleSource().fetch(competition)

    def test_without_a_login(self, kaggle: FakeKaggle, competition: Competition) -> None:
        with pytest.raises(PrerequisiteError, match="no login to Kaggle was found"):
            KaggleSource().fetch(competition)
        assert kaggle.calls == []

    def test_preparing_asks_kaggle_when_nothing_is_there(self, competition: Competition) -> None:
        with pytest.raises(PrerequisiteError, match="no login to Kaggle"):
            download_and_prepare_dataset(competition)


class TestLogin:
    def test_a_kaggle_json(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        _fetch(competition)
        assert kaggle.called("DownloadDataFiles")[0].headers["Authorization"] == BASIC

    @pytest.mark.parametrize("where", ["KAGGLE_API_TOKEN", "access_token"])
    def test_a_single_token(
        self, where: str, kaggle: FakeKaggle, competition: Competition, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        if where == "access_token":
            (tmp_path / "home" / ".kaggle").mkdir(exist_ok=True)
            (tmp_path / "home" / ".kaggle" / where).write_text(f"{TOKEN}\n")
        else:
            monkeypatch.setenv(where, TOKEN)
        _fetch(competition)
        assert kaggle.called("DownloadDataFiles")[0].headers["Authorization"] == BEARER
        _assert_whole(competition, kaggle)

    def test_name_and_key_in_the_environment(
        self, kaggle: FakeKaggle, competition: Competition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KAGGLE_USERNAME", USER)
        monkeypatch.setenv("KAGGLE_KEY", KEY)
        _fetch(competition)
        assert kaggle.called("DownloadDataFiles")[0].headers["Authorization"] == BASIC

    def test_a_server_error_while_logging_in_passes(
        self, kaggle: FakeKaggle, competition: Competition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        kaggle.faults["IntrospectToken"] = [Fault(503)]
        assert len(_fetch(competition)[1]) == 1

    def test_a_wrong_key(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.logins.clear()
        with pytest.raises(PrerequisiteError, match=r"does not accept the login in .*kaggle\.json: make a new API"):
            _fetch(competition)

    def test_a_wrong_token(
        self,
        kaggle: FakeKaggle,
        competition: Competition,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        kaggle.logins.clear()
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        with pytest.raises(PrerequisiteError, match="does not accept the login in KAGGLE_API_TOKEN"):
            _fetch(competition)
        assert capfd.readouterr().out == ""

    def test_rules_not_accepted(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["DownloadDataFiles"] = [Fault(403, "You must accept this competition's rules")]
        page = f"https://www.kaggle.com/c/{ID}/rules"
        with pytest.raises(RulesNotAcceptedError, match=f"must accept this competition.*{page}.*You must accept"):
            _fetch(competition)
        assert len(kaggle.called("DownloadDataFiles")) == 1

    @pytest.mark.parametrize(
        "id", ["detecting-insults-in-social-commentary", "the-icml-2013-whale-challenge-right-whale-redux"]
    )
    def test_rules_on_the_data_tab(self, id: str, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["DownloadDataFiles"] = [Fault(403)]
        with pytest.raises(RulesNotAcceptedError, match=f"https://www.kaggle.com/c/{id}/data"):
            _fetch(replace(competition, id=id))

    def test_an_unknown_competition(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.competitions.clear()
        with pytest.raises(PrerequisiteError, match=f"knows no competition '{ID}'"):
            _fetch(competition)

    def test_other_refusals_are_reported_in_kaggles_words(
        self, login: Path, kaggle: FakeKaggle, competition: Competition
    ) -> None:
        kaggle.faults["DownloadDataFiles"] = [Fault(400, "bad request")]
        with pytest.raises(PrerequisiteError, match="Kaggle refuses: bad request"):
            _fetch(competition)

    def test_clients_get_the_client(self, login: Path, kaggle: FakeKaggle, capfd: pytest.CaptureFixture[str]) -> None:
        login.chmod(0o644)  # the client warns of it on stdout
        kaggle.answers["ListDataFiles"] = {"files": [{"name": "train.csv", "totalBytes": 5}]}
        assert [file.name for file in authenticate_kaggle_api().competition_list_files(ID).files] == ["train.csv"]
        assert capfd.readouterr().out == ""

    def test_clients_get_a_permission_error(self, kaggle: FakeKaggle, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(PermissionError, match="no login to Kaggle"):
            authenticate_kaggle_api()
        kaggle.logins.clear()
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        with pytest.raises(PermissionError, match="KAGGLE_API_TOKEN"):
            authenticate_kaggle_api()

    def test_kaggle_json_is_looked_for_where_the_client_looks(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        assert config_folder() == tmp_path / "home" / ".kaggle"
        monkeypatch.delenv("KAGGLE_CONFIG_DIR")
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
        assert config_folder() == tmp_path / "xdg" / "kaggle"
        (tmp_path / "home" / ".kaggle").mkdir(exist_ok=True)
        assert config_folder() == tmp_path / "home" / ".kaggle"

    def test_doctor_says_where_the_login_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert [line.detail for line in doctor_line()] == ["none"]
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        (line,) = doctor_line()
        assert line[:3] == ("ok", "kaggle login", "KAGGLE_API_TOKEN")


class TestPreflight:
    def test_accepted(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        found = preflight(competition)
        assert found[:4] == (None, "accepted", f"https://www.kaggle.com/c/{ID}/rules", len(kaggle.archive))
        asked = kaggle.called("storage")[0]
        assert (asked.headers["Range"], asked.status) == ("bytes=0-0", 206)
        assert not competition.paths.root.exists()

    def test_what_it_unpacks_to(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        kinds = [
            {"extension": ".csv", "fileCount": 2, "totalSize": 700},
            {"extension": ".png", "totalSize": "9000000000"},
        ]
        kaggle.answers["GetCompetitionDataFilesSummary"] = {
            "fileSummaryInfo": {"totalFileCount": 9, "fileTypes": kinds}
        }
        assert preflight(competition).unpacked == 9_000_000_700
        kaggle.answers["GetCompetitionDataFilesSummary"] = {}
        assert preflight(competition).unpacked is None
        kaggle.faults["GetCompetitionDataFilesSummary"] = [Fault(500)] * 9
        found = preflight(competition, sleep=Waits())
        assert (found.rules, found.unpacked) == ("accepted", None)

    def test_one_login_serves_many(
        self, kaggle: FakeKaggle, competition: Competition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        api = connect()
        for _ in range(3):
            assert preflight(competition, api=api).rules == "accepted"
        assert len(kaggle.called("IntrospectToken")) == 1

    def test_not_accepted(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["DownloadDataFiles"] = [Fault(403, "You must accept")]
        assert preflight(competition)[:4] == (None, "not accepted", f"https://www.kaggle.com/c/{ID}/rules", None)

    def test_unknown_without_a_login(self, kaggle: FakeKaggle, competition: Competition) -> None:
        found = preflight(competition)
        assert (found.rules, found.size) == ("unknown", None)
        assert "no login" in str(found.reason)
        assert kaggle.calls == []

    def test_unknown_while_kaggle_is_down(self, login: Path, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.faults["DownloadDataFiles"] = [Fault(503)] * 2
        waits = Waits()
        assert preflight(competition, sleep=waits).rules == "unknown"
        assert len(waits) == 1

    def test_unknown_without_a_network(
        self, login: Path, competition: Competition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from kagglesdk import kaggle_env

        with socket.socket() as taken:  # bound, but nobody listens
            taken.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
            monkeypatch.setitem(kaggle_env._env_to_endpoint, kaggle_env.KaggleEnv.LOCAL, nobody)
            found = preflight(competition, sleep=Waits())
        assert (found.rules, found.size) == ("unknown", None)
        assert "cannot be reached" in str(found.reason)

    def test_the_table_says_what_to_do_and_how_much_room_it_takes(
        self, login: Path, kaggle: FakeKaggle, tmp_path: Path
    ) -> None:
        kaggle.competitions.add(OTHER)
        kaggle.answers["GetCompetitionDataFilesSummary"] = {
            "fileSummaryInfo": {"totalFileCount": 1, "fileTypes": [{"extension": ".csv", "totalSize": 10**9}]}
        }
        kaggle.faults["DownloadDataFiles"] = [Fault(), Fault(403, "You must accept")]
        registry, size = Registry(tmp_path / "data"), len(kaggle.archive)
        accepted, refused, unknown = check_all(
            [registry.get_competition(id) for id in (ID, OTHER, UNKNOWN)], KaggleSource()
        )
        assert accepted == (ID, "none", "accepted", size, size + 10**9, size + 10**9, "")
        page = f"accept the rules at https://www.kaggle.com/c/{OTHER}/rules"
        assert refused == (OTHER, "none", "not accepted", None, None, None, page)
        assert unknown[:3] == (UNKNOWN, "none", "unknown")
        assert "Kaggle knows no competition" in unknown.advice

    def test_what_is_on_disk(self, kaggle: FakeKaggle, competition: Competition) -> None:
        where = competition.paths
        where.root.mkdir(parents=True)
        where.archive.write_bytes(kaggle.archive)
        assert (preflight(competition).present, preflight(competition).size) == ("archive", len(kaggle.archive))
        where.raw.mkdir()
        (where.raw / "train.csv").touch()
        assert (preflight(competition).present, preflight(competition).size) == ("raw", None)
        assert kaggle.calls == []


def test_rules_not_accepted_is_a_separate_outcome(login: Path, kaggle: FakeKaggle, tmp_path: Path) -> None:
    raw = TwinSource().fetch(Registry(tmp_path / "twin").get_competition(ID))
    kaggle.archive = Path(shutil.make_archive(str(tmp_path / "raw"), "zip", raw)).read_bytes()
    kaggle.competitions.add(OTHER)
    kaggle.faults["DownloadDataFiles"] = [Fault(403, "You must accept")]
    progress = RecordingProgress()
    watch: dict[str, Progress] = {ID: progress}
    ids, unchecked = [OTHER, UNKNOWN, ID], Options(verify=False)
    registry = Registry(tmp_path / "data")  # one by one, and so in this process: other processes do not know the server
    outcomes = [
        outcome for id in ids for outcome in prepare_many(registry, [id], KaggleSource(), unchecked, progress=watch)
    ]
    assert [outcome.status for outcome in outcomes] == ["rules not accepted", "failed", "prepared"]
    assert f"open https://www.kaggle.com/c/{OTHER}/rules" in outcomes[0].reason
    size = len(kaggle.archive)
    assert ("downloading", size, size) in progress.events
    assert "preparing" in progress.stages


def _board(*pages: list[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A leaderboard in pages; a page's token is its number."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        number = int(body.get("pageToken") or 0)
        following = str(number + 1) if number + 1 < len(pages) else ""
        rows = [{"teamId": 7, "teamName": "them", "score": score} for score in pages[number]]
        return {"submissions": rows, "nextPageToken": following}

    return answer


@pytest.mark.usefixtures("login")
class TestLeaderboard:
    @pytest.fixture
    def competition(self, competition: Competition, tmp_path: Path) -> Competition:
        board = tmp_path / "leaderboard.csv"
        board.write_text("score\n0.5\n")
        return replace(competition, leaderboard=board)

    def test_it_is_written_best_first(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.answers["GetLeaderboard"] = _board(["0.9", "0.8"], ["0.7", "", "0.75"])
        kaggle.faults["GetLeaderboard"] = [Fault(), Fault(429, headers={"Retry-After": "1"})]
        waits = Waits()
        assert module.download_leaderboard(competition, sleep=waits) == competition.leaderboard
        assert competition.leaderboard.read_text() == "score\n0.9\n0.8\n0.75\n0.7\n"
        assert len(waits) == 1
        assert len(kaggle.called("GetLeaderboard")) == 3
        assert not any(call.body.get("overridePublic") for call in kaggle.called("GetLeaderboard"))

    def test_lower_may_be_better(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.answers["GetLeaderboard"] = _board(["0.9", "0.8"])
        ensure_leaderboard_exists(replace(competition, higher_is_better=False), force=True)
        assert competition.leaderboard.read_text() == "score\n0.8\n0.9\n"

    @pytest.mark.parametrize("scores", [[], ["0.9", "n/a"], ["nan"]])
    def test_a_bad_one_leaves_the_old_one(
        self, scores: list[str], kaggle: FakeKaggle, competition: Competition
    ) -> None:
        kaggle.answers["GetLeaderboard"] = _board(scores)
        with pytest.raises(PrerequisiteError, match="no leaderboard of numbers"):
            module.download_leaderboard(competition)
        assert competition.leaderboard.read_text() == "score\n0.5\n"

    def test_a_folder_that_cannot_be_written(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.answers["GetLeaderboard"] = _board(["0.9"])
        nowhere = competition.leaderboard / "not a folder" / "leaderboard.csv"
        with pytest.raises(PrerequisiteError, match="cannot write"):
            module.download_leaderboard(replace(competition, leaderboard=nowhere))

    def test_the_command(self, kaggle: FakeKaggle, competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
        kaggle.answers["GetLeaderboard"] = _board(["0.9"])
        monkeypatch.setattr(Registry, "get_competition", lambda *_: competition)
        done = CliRunner().invoke(dev, ["download-leaderboard", "-c", ID, "--force"], catch_exceptions=False)
        assert done.stdout.strip() == str(competition.leaderboard)
        assert competition.leaderboard.read_text() == "score\n0.9\n"


@pytest.mark.usefixtures("login")
class TestDescription:
    def test_pages_become_one_text(self, kaggle: FakeKaggle, competition: Competition) -> None:
        pages = {
            "rules": "No.",
            "data-description": "Columns.",
            "evaluation": "Accuracy.",
            "description": "<p>Why.</p>",
        }
        listed = [{"name": name, "content": content} for name, content in pages.items()]
        kaggle.answers["ListCompetitionPages"] = {"pages": [*listed, {"name": "prizes", "content": ""}]}
        assert original_description(competition) == (
            "# Spaceship Titanic\n\n## Description\n\n<p>Why.</p>\n\n## Evaluation\n\nAccuracy.\n"
            "\n## Data description\n\nColumns.\n"
        )

    def test_no_pages(self, kaggle: FakeKaggle, competition: Competition) -> None:
        kaggle.answers["ListCompetitionPages"] = {"pages": []}
        with pytest.raises(PrerequisiteError, match="no description"):
            original_description(competition)


class TestOldClient:
    """Programs that share our environment pin old clients: only what Kaggle is asked for is refused."""

    MESSAGE = (
        "kaggle 1.6.17 is too old to download with: run `pip install 'kaggle>=2.2'`, "
        "or download the archive yourself and name it with `mlebench prepare --from`"
    )

    @pytest.fixture(autouse=True)
    def _old(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from kaggle.api.kaggle_api_extended import KaggleApi

        monkeypatch.setattr("mlebench.data.kaggle_api.metadata.version", lambda name: "1.6.17")
        monkeypatch.delattr(KaggleApi, "build_kaggle_client")

    @pytest.mark.usefixtures("login")
    def test_downloads_are_refused_in_one_line(self, competition: Competition) -> None:
        with pytest.raises(PrerequisiteError) as error:
            download_and_prepare_dataset(competition)
        assert str(error.value) == self.MESSAGE
        with pytest.raises(PrerequisiteError, match="too old"):
            original_description(competition)
        assert preflight(competition).reason == self.MESSAGE

    @pytest.mark.usefixtures("login")
    def test_the_rest_works(self, competition: Competition) -> None:
        assert authenticate_kaggle_api() is not None
        prepare(competition, TwinSource())
        assert competition.answers.is_file()

    def test_a_login_that_it_does_not_know(self, competition: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
        """1.6 raises an OSError if there is only a token, which came later."""
        from kaggle.api.kaggle_api_extended import KaggleApi

        def authenticate(self: object) -> None:
            raise OSError("Could not find kaggle.json.")

        monkeypatch.setattr(KaggleApi, "authenticate", authenticate)
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        with pytest.raises(PrerequisiteError, match="too old"):
            download_and_prepare_dataset(competition)
