"""A hostile program's attempts to use keys of the user who started its sandbox. Standard library only.

Usage: key_attempts.py NAME NUMBER ...

The kernel has no namespace for keys: a process whose user owns a key needs nothing but its number.
"""

import ctypes
import errno
import json
import os
import re
import sys
from collections.abc import Iterable

# The numbers of `add_key`, `request_key` and `keyctl`.
ADD_KEY, REQUEST_KEY, KEYCTL = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]
JOIN_SESSION, DESCRIBE, LINK, SEARCH, READ = 1, 6, 8, 10, 11
SESSION, KEYRINGS = -3, (-1, -2, -3, -4, -5)  # of the thread, process, session and user, and the user's default session
LISTS = ("/proc/keys", "/proc/key-users")


def attempts(name: bytes, numbers: Iterable[int]) -> dict[str, str]:
    """Each attempt and the error it ended with, or `done`, to use a key by its name, its number and its keyring's."""
    lists = {path: read(path) for path in LISTS}
    listed = [int(number, 16) for number in re.findall("^[0-9a-f]{8}", lists["/proc/keys"], re.MULTILINE)]
    text = ctypes.create_string_buffer(4096)
    results = {path: "done" if content else "nothing" for path, content in lists.items()}
    results |= {f"search {ring}": call(KEYCTL, SEARCH, ring, b"user", name, 0) for ring in KEYRINGS}
    numbers = list(dict.fromkeys([*numbers, *listed]))
    for number in numbers:
        results[f"describe {number}"] = call(KEYCTL, DESCRIBE, number, text, 4096)
        results[f"link {number}"] = call(KEYCTL, LINK, number, SESSION)
        results[f"read {number}"] = call(KEYCTL, READ, number, text, 4096)
        results[f"search {number}"] = call(KEYCTL, SEARCH, number, b"user", name, 0)
    for number in numbers:  # by now, its keyring may be ours
        results[f"read {number} again"] = call(KEYCTL, READ, number, text, 4096)
    results["request"] = call(REQUEST_KEY, b"user", name, None, SESSION)
    results["add"] = call(ADD_KEY, b"user", b"a key of the sandbox", b"x", 1, SESSION)
    results["join"] = call(KEYCTL, JOIN_SESSION, None)
    return results


def read(path: str) -> str:
    try:
        with open(path) as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def call(*arguments: "int | bytes | ctypes.Array[ctypes.c_char] | None") -> str:
    result = ctypes.CDLL(None, use_errno=True).syscall(*arguments)
    return "done" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "unknown")


if __name__ == "__main__":
    print(json.dumps(attempts(sys.argv[1].encode(), map(int, sys.argv[2:]))))
