"""Signatures of bundles, by ssh-keygen: over the manifest, which names the checksum of everything else.

A signer counts only if a file of allowed signers lists them. Without such a file a signature proves nothing.
"""

import subprocess
import tempfile
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.paths import SCRATCH, bundle_signature
from mlebench.core.untrusted import FileMissingError, UntrustedFileError, open_untrusted
from mlebench.records.bundle import SignatureState

NAMESPACE = "mlebench"
LARGEST = 1 << 16
SECONDS = 60
NONE, NOT_CHECKED, GOOD, BAD = "none", "not checked", "good", "bad"


def sign(manifest: bytes, key: Path, target: Path) -> None:
    """Write the signature of a manifest; ssh-keygen may ask for the passphrase of the key."""
    done = _ssh_keygen(["-Y", "sign", "-n", NAMESPACE, "-f", str(key)], manifest, seconds=None)
    if done.returncode:
        raise PrerequisiteError(f"{key} cannot sign: {_last_line(done)}")
    write_whole(target, done.stdout.decode("ascii"))


def check(bundle: Path, manifest: bytes, signers: Path | None) -> SignatureState:
    """The state of a bundle's signature, with its `signer` if it is good, or `why` it is bad."""
    try:
        with open_untrusted(bundle_signature(bundle.absolute()), LARGEST) as file:
            signature = file.read(LARGEST)
    except FileMissingError:
        return SignatureState(state=NONE)
    except UntrustedFileError as error:
        return SignatureState(state=BAD, why=f"the signature {error}")
    if signers is None:
        return SignatureState(state=NOT_CHECKED)
    if not signers.is_file():
        raise PrerequisiteError(f"there is no file of allowed signers {signers}")
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as scratch:
        copy = Path(scratch) / NAMESPACE
        copy.write_bytes(signature)
        return _check(copy, manifest, signers)


def _check(signature: Path, manifest: bytes, signers: Path) -> SignatureState:
    known = ["-s", str(signature), "-f", str(signers)]
    principals = _ssh_keygen(["-Y", "find-principals", *known], b"")
    names = principals.stdout.decode("utf-8", "replace").splitlines()
    if principals.returncode or not names:
        return SignatureState(state=BAD, why="none of the allowed signers made it")
    done = _ssh_keygen(["-Y", "verify", "-n", NAMESPACE, "-I", names[0], *known], manifest)
    if done.returncode:
        return SignatureState(state=BAD, why=_last_line(done))
    return SignatureState(state=GOOD, signer=names[0])


def _ssh_keygen(
    arguments: list[str], data: bytes, seconds: float | None = SECONDS
) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # noqa: S603
            ["ssh-keygen", *arguments],  # noqa: S607
            input=data,
            capture_output=True,
            check=False,
            timeout=seconds,
        )
    except FileNotFoundError:
        raise PrerequisiteError("signatures need ssh-keygen, which is not installed: install openssh-client") from None
    except subprocess.TimeoutExpired:
        raise PrerequisiteError(f"ssh-keygen did not answer within {SECONDS} s") from None


def _last_line(done: "subprocess.CompletedProcess[bytes]") -> str:
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"ssh-keygen ended with exit code {done.returncode}"
