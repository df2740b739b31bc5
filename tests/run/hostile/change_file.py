"""Tries to change a file for whoever uses it next, in every way that a program has; prints what worked."""

import ctypes
import json
import os
import sys
from pathlib import Path

path = Path(sys.argv[1])
away = Path(os.environ["HOME"], "away")
MS_REMOUNT, MS_BIND, MNT_DETACH = 32, 4096, 2
libc = ctypes.CDLL(None, use_errno=True)


def remount() -> None:
    if libc.mount(b"none", bytes(path), None, MS_REMOUNT | MS_BIND, None):
        raise OSError(ctypes.get_errno(), "mount")


def unmount() -> None:
    if libc.umount2(bytes(path), MNT_DETACH):
        raise OSError(ctypes.get_errno(), "umount")


def reopen() -> None:
    held = os.open(path, os.O_RDONLY)
    os.open(f"/proc/self/fd/{held}", os.O_WRONLY)


attempts = {
    "write": lambda: os.open(path, os.O_RDWR),
    "append": lambda: os.open(path, os.O_WRONLY | os.O_APPEND),
    "truncate": lambda: os.truncate(path, 0),
    "chmod": lambda: path.chmod(0o777),
    "chown": lambda: os.chown(path, os.getuid(), os.getgid()),
    "times": lambda: os.utime(path, (0, 0)),
    "attribute": lambda: os.setxattr(path, "user.mark", b"1"),
    "unlink": lambda: path.unlink(),
    "rename": lambda: path.rename(away),
    "replace": lambda: Path(__file__).replace(path),
    "link": lambda: away.hardlink_to(path),
    "reopen": reopen,
    "remount": remount,
    "unmount": unmount,
}
done = []
for name, attempt in attempts.items():
    try:
        attempt()
        done.append(name)
    except OSError:
        pass
print(json.dumps(done))
