"""What goes into a bundle, and what never does."""

import errno
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.forged_bundles import unpack, write_group
from support.run_fixtures import Mlebench

from mlebench.bundles import contents, make, signature
from mlebench.bundles.make import make_bundle
from mlebench.bundles.reader import read_bundle
from mlebench.bundles.secret_scan import MARK, SecretScanner
from mlebench.bundles.signature import check
from mlebench.core.errors import PrerequisiteError
from mlebench.records.bundle import Redaction
from mlebench.records.run_groups import Group
from mlebench.registry import Competition

KEYS = {
    "an OpenAI key": "sk-proj-Abcdefghijklmnopqrst0123",
    "an Anthropic key": "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
    "an AWS key": "AKIAABCDEFGHIJKLMNOP",
    "a GitHub token": "ghp_" + "a1" * 18,
    "a Hugging Face token": "hf_" + "aB" * 17,
    "a Slack token": "xoxb-123456789012-abcdef",
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "a private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----",
    "a Kaggle key": '{"username":"me","key":"0123456789abcdef0123456789abcdef"}',
}


def test_everything_that_counts_is_included_unchanged(group: Group, bundle: Path) -> None:
    found = unpack(bundle)
    names = list(found)
    assert names[:3] == ["manifest.json", "group.json", group.record.report]
    for run in group.runs():
        for path in (run.paths.record, run.paths.code / "train.py", run.paths.logs / "agent.log", run.paths.log):
            assert found[path.relative_to(group.paths.root).as_posix()] == path.read_bytes()
        name = run.paths.submission.relative_to(group.paths.root).as_posix()
        assert found.get(name) == (run.paths.submission.read_bytes() if run.paths.submission.exists() else None)
    manifest = json.loads(found["manifest.json"])
    assert [member["name"] for member in manifest["members"]] == names[1:]
    (competition,) = {row["id"]: row["data"] for row in manifest["competitions"] if row["data"]}.items()
    report = next(group.runs()).record.report
    assert report
    assert competition == (group.record.competitions[0], report.data)
    again = read_bundle(bundle)
    assert again.group.record == group.record
    assert [run.record for run in again.group.runs()] == [run.record for run in group.runs()]


def test_the_same_group_gives_the_same_bytes_anywhere(group: Group, bundle: Path, tmp_path: Path) -> None:
    copy = Group.read(shutil.copytree(group.paths.root, tmp_path / "elsewhere" / group.record.id))
    for path in copy.paths.root.rglob("*"):
        os.utime(path, (0, 0))
    make_bundle(copy, tmp_path / "again.tar.gz")
    assert (tmp_path / "again.tar.gz").read_bytes() == bundle.read_bytes()


def test_findings_go_in_and_links_stay_out(group: Group, tmp_path: Path) -> None:
    run = next(group.runs())
    run.paths.findings.mkdir()
    run.paths.finding("rules").write_text("{}")
    (run.paths.code / "answers").symlink_to("/etc/passwd")
    (run.paths.code / "weights.npz").write_bytes(b"PK\x03\x04 and so on")
    (run.paths.code / "with\nnewline").write_text("x")
    os.mkfifo(run.paths.logs / "pipe")
    manifest = make_bundle(group, tmp_path / "bundle.tar.gz")
    found = unpack(tmp_path / "bundle.tar.gz")
    assert f"{run.paths.root.name}/findings/rules.json" in found
    assert not any("answers" in name or "pipe" in name or "weights" in name for name in found)
    reasons = {row.name.rpartition("/")[2]: row.reason for row in manifest.left_out}
    assert set(reasons) == {"answers", "weights.npz", "pipe", "with\\nnewline'"}
    assert "compressed" in reasons["weights.npz"]


def test_what_a_killed_process_left_stays_out_and_does_not_pile_up(group: Group, bundle: Path, tmp_path: Path) -> None:
    run = next(group.runs())
    run.paths.findings.mkdir()
    (run.paths.findings / "rules.json.mlebench-part-9").write_text("{")
    old, new = tmp_path / "bundle.tar.gz.mlebench-part-9", tmp_path / "bundle.tar.gz.mlebench-part-10"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    make_bundle(group, tmp_path / "bundle.tar.gz")
    assert (tmp_path / "bundle.tar.gz").read_bytes() == bundle.read_bytes()
    assert not old.exists()
    assert new.exists(), "its process may be alive"


def test_long_logs_are_cut_in_the_middle_and_room_is_limited(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("contents", "make"):
        monkeypatch.setattr(f"mlebench.bundles.{module}.LARGEST_FILE", 10_000)
    monkeypatch.setattr(contents, "ROOM", 25_000)
    run = next(group.runs())
    (run.paths.logs / "agent.log").write_bytes(b"beginning" + bytes(50_000) + b"end")
    for number in range(4):
        (run.paths.code / f"{number}.py").write_bytes(b"#" * 9000)
    (run.paths.code / "big.py").write_bytes(b"#" * 10_001)
    manifest = make_bundle(group, tmp_path / "bundle.tar.gz")
    log = unpack(tmp_path / "bundle.tar.gz")[f"{run.paths.root.name}/logs/agent.log"]
    assert log.startswith(b"beginning")
    assert log.endswith(b"end")
    assert b"40012 bytes left out" in log
    assert [row.bytes for row in manifest.cut] == [50_012]
    assert [row.name.rpartition("/")[2] for row in manifest.left_out] == ["2.py", "3.py", "big.py"]


def test_a_group_that_has_not_ended_cannot_be_bundled(group: Group, tmp_path: Path) -> None:
    next(group.runs()).write(state="running", ended=None)
    with pytest.raises(PrerequisiteError, match=r"1 runs .* have not ended"):
        make_bundle(group, tmp_path / "bundle.tar.gz")
    assert not list(tmp_path.glob("bundle*"))


@pytest.mark.parametrize("what", KEYS)
def test_a_key_in_a_log_is_refused_or_removed_and_never_shown(group: Group, tmp_path: Path, what: str) -> None:
    run = next(group.runs())
    log = run.paths.logs / "agent.log"
    log.write_text(f"one\ntwo\nthe key is {KEYS[what]} indeed\n")
    name = f"{run.paths.root.name}/logs/agent.log"
    target = tmp_path / "bundle.tar.gz"
    with pytest.raises(PrerequisiteError, match=f"{name}, line 3: {what}") as refused:
        make_bundle(group, target)
    secret = KEYS[what].splitlines()[-1][-20:-4]
    assert secret not in str(refused.value)
    assert not target.exists()
    manifest = make_bundle(group, target, redact=True)
    assert [row for row in manifest.redacted if row.what == what] == [Redaction(name=name, line=3, what=what)]
    text = unpack(target)[name]
    assert MARK in text
    assert secret.encode() not in text
    assert (text.startswith(b"one\ntwo\nthe key is "), text.endswith(b" indeed\n")) == (True, True)


def test_values_of_this_process_are_secrets_too(group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", 'quoted"and häßlich')
    monkeypatch.setenv("MY_SHORT_KEY", "short")
    monkeypatch.setenv("MY_HARMLESS_SETTING", "first line")
    run = next(group.runs())
    run.write(detail='it said quoted"and häßlich')
    with pytest.raises(PrerequisiteError, match=r"run\.json, line \d+: the value of \$MY_SERVICE_TOKEN") as refused:
        make_bundle(group, tmp_path / "bundle.tar.gz")
    assert "quoted" not in str(refused.value)
    make_bundle(group, tmp_path / "bundle.tar.gz", redact=True)
    detail = [one.record.detail for one in read_bundle(tmp_path / "bundle.tar.gz").group.runs()]
    assert detail[0] == f"it said {MARK.decode()}"


def test_a_submission_is_never_changed(titanic: Competition, tmp_path: Path) -> None:
    filler = b"a,b\n" * 400_000
    spot = (1 << 20) - 10  # so that the key spans two pieces
    text = filler[:spot] + KEYS["an AWS key"].encode() + b"\n" + filler
    group = write_group(tmp_path / "runs", titanic, [text])
    manifest = make_bundle(group, tmp_path / "bundle.tar.gz", redact=True)
    assert [(row.line, row.what) for row in manifest.redacted] == [(text[:spot].count(b"\n") + 1, "an AWS key")]
    assert [row.reason for row in manifest.left_out] == ["it holds a secret"]
    assert not any(name.endswith(".csv") for name in unpack(tmp_path / "bundle.tar.gz"))


def test_file_names_are_searched_for_secrets(group: Group, tmp_path: Path) -> None:
    run = next(group.runs())
    (run.paths.code / KEYS["an AWS key"]).write_text("x")
    (run.paths.code / f"{KEYS['a Slack token']}.py").symlink_to("x")
    with pytest.raises(PrerequisiteError, match="an AWS key, in the file's name"):
        make_bundle(group, tmp_path / "bundle.tar.gz")
    make_bundle(group, tmp_path / "bundle.tar.gz", redact=True)
    for data in unpack(tmp_path / "bundle.tar.gz").values():
        assert not any(KEYS[what].encode() in data for what in ("an AWS key", "a Slack token"))


@given(st.binary(max_size=300), st.sampled_from(sorted(KEYS)), st.binary(max_size=300), st.integers(1, 80))
def test_no_key_is_left_whatever_surrounds_it(before: bytes, what: str, after: bytes, step: int) -> None:
    secrets = SecretScanner({})
    data = before + b" " + KEYS[what].encode() + b" " + after
    assert what in {found.what for found in secrets.find(data)}
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    assert set(secrets.find_in(pieces)) >= set(secrets.find(data))
    assert secrets.find(secrets.remove(data)) == []


@pytest.mark.parametrize("text", ["sk-learn-contrib-lightning-extension", "task-" + "a" * 40, "eyJ" * 200_000])
def test_other_words_are_not_keys(text: str) -> None:
    assert SecretScanner({}).find(text.encode()) == []


def test_a_log_full_of_keys_is_reported_briefly(group: Group, tmp_path: Path) -> None:
    run = next(group.runs())
    (run.paths.logs / "agent.log").write_text(f"{KEYS['an AWS key']}\n" * 100_000)
    manifest = make_bundle(group, tmp_path / "bundle.tar.gz", redact=True)
    assert [row.line for row in manifest.redacted] == list(range(1, 101))
    text = unpack(tmp_path / "bundle.tar.gz")[f"{run.paths.root.name}/logs/agent.log"]
    assert text == (MARK + b"\n") * 100_000


def test_the_command_makes_signs_and_names_it(group: Group, mlebench: Mlebench, tmp_path: Path) -> None:
    done = mlebench("bundle", "make", str(group.paths.root), cwd=tmp_path)
    target = tmp_path / f"{group.record.id}.bundle.tar.gz"
    assert tarfile.is_tarfile(target)
    assert target.name in done.stderr
    assert "files" in done.stderr
    (next(group.runs()).paths.logs / "agent.log").write_text(KEYS["an AWS key"])
    done = mlebench("bundle", "make", str(group.paths.root), "-o", str(tmp_path / "other.tar.gz"), code=1)
    assert done.stderr.startswith("Error: the bundle would contain secrets")
    assert not (tmp_path / "other.tar.gz").exists()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_signatures_count_against_signers_only(
    group: Group, mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    for name in ("mine", "other"):
        key = tmp_path / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key], check=True)
        public = key.with_suffix(".pub").read_text()
        (tmp_path / f"{name}.signers").write_text(f'{name}@example.com namespaces="mlebench" {public}')
    target = tmp_path / "signed.tar.gz"
    make = ["bundle", "make", str(group.paths.root), "-o", str(target)]

    def signature(signers: str | None) -> dict[str, str]:
        return msgspec.to_builtins(
            check(target, read_bundle(target).manifest_bytes, tmp_path / signers if signers else None)
        )

    mlebench(*make)
    assert signature("mine.signers") == {"state": "none"}
    mlebench(*make, "--sign", str(tmp_path / "mine"))
    assert signature(None) == {"state": "not checked"}
    assert signature("mine.signers") == {"state": "good", "signer": "mine@example.com"}
    assert signature("other.signers") == {"state": "bad", "why": "none of the allowed signers made it"}
    verify = ["bundle", "verify", str(target), "--runs-dir", str(tmp_path / "kept"), "--signers"]
    assert "signature: good (mine@example.com)" in mlebench(*verify, str(tmp_path / "mine.signers")).stderr
    assert "signature: bad" in mlebench(*verify, str(tmp_path / "other.signers"), code=1).stderr
    signed = (tmp_path / "signed.tar.gz.sig").read_bytes()
    (next(group.runs()).paths.code / "train.py").write_text("something else")
    make_bundle(group, target)
    assert not (tmp_path / "signed.tar.gz.sig").exists()  # another bundle's signature is not left beside it
    for nonsense in (signed, b"", b"nonsense", signed[:100]):
        (tmp_path / "signed.tar.gz.sig").write_bytes(nonsense)
        assert signature("mine.signers")["state"] == "bad"


@contextmanager
def _fault_at(count: int, fault: int) -> Iterator[list[str]]:
    """The call of this number that opens, lists or reads something of a run fails."""
    calls: list[str] = []

    def call(name: str, act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        calls.append(f"{name} {arguments[0]}")
        if len(calls) == count:
            raise OSError(fault, os.strerror(fault), str(arguments[0]))
        return act(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "scandir", "fdopen", "fstat"):
            patch.setattr(os, name, partial(call, name, getattr(os, name)))
        yield calls


@pytest.mark.parametrize("fault", [errno.EIO, errno.EMFILE, errno.ENOMEM, errno.ESTALE])
def test_a_fault_of_ours_leaves_nothing_out_of_a_bundle(group: Group, bundle: Path, tmp_path: Path, fault: int) -> None:
    target = tmp_path / "mine.tar.gz"
    with _fault_at(0, fault) as calls:
        make_bundle(group, target)
    assert len(calls) > 50
    for count in range(1, len(calls) + 1):
        target.unlink(missing_ok=True)
        with suppress(PrerequisiteError, OSError), _fault_at(count, fault):
            make_bundle(group, target)
        assert not target.exists() or target.read_bytes() == bundle.read_bytes(), calls[count - 1]
    assert {path.name for path in tmp_path.iterdir()} <= {"runs", bundle.name, target.name}


def test_a_file_that_vanishes_while_a_bundle_is_made_is_reported(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanishes(found: list[str]) -> None:
        shutil.rmtree(next(group.runs()).paths.code)

    monkeypatch.setattr(make, "_refuse", vanishes)
    with pytest.raises(PrerequisiteError, match=r"train\.py has changed in the meantime"):
        make_bundle(group, tmp_path / "mine.tar.gz")


def test_a_bundle_that_is_in_its_place_was_made_whatever_the_disk_does_next(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.EIO, "failed")))
    make_bundle(group, tmp_path / "mine.tar.gz")
    assert read_bundle(tmp_path / "mine.tar.gz")


def test_a_signature_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = subprocess.CompletedProcess([], 0, b"the signature\n" * 1000, b"")
    monkeypatch.setattr(signature, "_ssh_keygen", lambda *_, **__: signed)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        signature.sign(b"", tmp_path / "key", tmp_path / "mine.sig")
    assert not list(tmp_path.glob("mine*"))
