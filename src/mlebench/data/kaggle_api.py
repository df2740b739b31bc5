"""Talking to Kaggle through its official client: login, retries, and errors that say who must act.

The client is imported on the first request, never earlier.
"""

import contextlib
import io
import logging
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from mlebench.core.errors import PrerequisiteError
from mlebench.core.retry_after import retry_after_seconds

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Sleep = Callable[[float], None]

OLDEST_CLIENT = (2, 2)  # its older versions are built differently
TRIES = 6  # in a row without new bytes
LONGEST_WAIT = 3600.0
TIMEOUT = (30, 120)  # seconds to connect; seconds without a byte
# For these the rules page no longer has a button, but the Data tab still asks.
RULES_ON_DATA_TAB = {"detecting-insults-in-social-commentary", "the-icml-2013-whale-challenge-right-whale-redux"}

_one_login = threading.Lock()


class RulesNotAcceptedError(PrerequisiteError):
    """The user has not accepted a competition's rules with the account that is logged in."""


class NoLoginError(PrerequisiteError):
    """There is nothing to log in with."""


def competition_page(id: str) -> str:
    return f"https://www.kaggle.com/c/{id}"


def rules_page(id: str) -> str:
    return f"{competition_page(id)}/{'data' if id in RULES_ON_DATA_TAB else 'rules'}"


def credentials() -> list[str]:
    """Where a login to Kaggle is found, in the order in which the client looks; needs no client."""
    home = Path("~/.kaggle").expanduser()
    names = ["KAGGLE_API_TOKEN"] if os.environ.get("KAGGLE_API_TOKEN") else []
    names += [str(home / name) for name in ("access_token", "access_token.txt") if (home / name).is_file()]
    if os.environ.get("KAGGLE_USERNAME") and os.environ.get("KAGGLE_KEY"):
        names.append("KAGGLE_USERNAME and KAGGLE_KEY")
    files = config_folder() / "kaggle.json", home / "credentials.json"
    return names + [str(path) for path in files if path.is_file()]


def config_folder() -> Path:
    """Where the client looks for kaggle.json."""
    if named := os.environ.get("KAGGLE_CONFIG_DIR"):
        return Path(named)
    home = Path("~/.kaggle").expanduser()
    if home.exists() or not sys.platform.startswith("linux"):
        return home
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "kaggle"


def connect(*, sleep: Sleep = time.sleep, tries: int = TRIES) -> Any:
    """A logged-in client of Kaggle's API (`KaggleApi`)."""
    return with_retries("Kaggle", lambda api: api, sleep=sleep, tries=tries)


def _login() -> Any:
    names = credentials()
    if not names:
        raise NoLoginError(
            "no login to Kaggle was found: make an API token in the settings of your Kaggle account "
            "and put it in ~/.kaggle/access_token or KAGGLE_API_TOKEN"
        )
    from requests import RequestException

    said = io.StringIO()
    # The client logs in when it is imported, too; it prints on stdout, which other programs read, and may exit.
    with _one_login, contextlib.redirect_stdout(said):
        try:
            from kaggle.api.kaggle_api_extended import KaggleApi

            api = KaggleApi()
            api.authenticate()
        except ImportError as error:
            raise PrerequisiteError(
                f"the `kaggle` package does not work ({error}): run `pip install kaggle six`"
            ) from error
        except RequestException:
            raise
        except (OSError, SystemExit):  # older clients raise if they do not know this kind of login
            raise _outdated_client() or _bad_login() from None
    for line in said.getvalue().splitlines():
        if line.startswith("Warning"):
            logger.warning("%s", line)
    api.already_printed_version_warning = True  # it would be printed on stdout
    return api


def _login_in_use() -> str:
    return (credentials() or ["your login"])[0]


def _bad_login() -> PrerequisiteError:
    return PrerequisiteError(
        f"Kaggle does not accept the login in {_login_in_use()}: "
        f"make a new API token in the settings of your Kaggle account"
    )


def _outdated_client() -> PrerequisiteError | None:
    """What to do if the installed client is too old to download with."""
    version = metadata.version("kaggle")
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) >= OLDEST_CLIENT:
        return None
    oldest = ".".join(map(str, OLDEST_CLIENT))
    return PrerequisiteError(
        f"kaggle {version} is too old to download with: run `pip install 'kaggle>={oldest}'`, "
        f"or download the archive yourself and name it with `mlebench prepare --from`"
    )


@contextlib.contextmanager
def client(api: Any, headers: dict[str, str]) -> Iterator[Any]:
    if fault := _outdated_client():
        raise fault
    with api.build_kaggle_client() as kaggle:
        # The client has no setting for either. Without them, a stalled connection would hang forever, and Kaggle
        # would send bytes again that we have.
        session = kaggle.http_client()._session
        session.headers.update(headers)
        session.send = partial(session.send, timeout=TIMEOUT)
        yield kaggle


def ask(
    id: str,
    question: Callable[[Any, str], Answer],
    *,
    sleep: Sleep,
    api: Any = None,
    headers: dict[str, str] | None = None,
    tries: int = TRIES,
) -> Answer:
    def attempt(api: Any) -> Answer:
        with client(api, headers or {}) as kaggle:
            return question(kaggle, id)

    return with_retries(id, attempt, api=api, sleep=sleep, tries=tries)


def with_retries(
    id: str,
    attempt: Callable[[Any], Answer],
    *,
    sleep: Sleep,
    api: Any = None,
    advanced: Callable[[], bool] = lambda: False,
    tries: int = TRIES,
) -> Answer:
    """Log in and try until it works, or until trying again is pointless."""
    from requests import RequestException

    failures = 0
    while True:
        try:
            api = api or _login()
            return attempt(api)
        except RequestException as error:
            if error.response is not None:
                error.response.close()  # nobody else does, and its connection would stay open
            if fault := _fault(error, id):
                raise fault from error
            failures = 1 if advanced() else failures + 1
            if failures >= tries:
                raise PrerequisiteError(f"{id}: Kaggle cannot be reached, try again later ({_text(error)})") from error
            wait = _pause(error, failures)
            logger.warning("%s: %s; trying again in %.0f s", id, _text(error), wait)
            sleep(wait)


def _fault(error: Any, id: str) -> PrerequisiteError | None:
    """What someone has to fix; None if trying again may help."""
    response = error.response
    # After a redirect the response comes from the storage, and the next attempt gets a new link.
    if response is None or response.history or response.status_code in (408, 416, 425, 429):
        return None
    status = response.status_code
    if status == 401:
        return _bad_login()
    if status == 403:
        return RulesNotAcceptedError(
            f"{id}: Kaggle refuses, most likely because you must accept this competition's rules: open "
            f"{rules_page(id)} with the account of {_login_in_use()}, accept them, and run this again "
            f"(Kaggle says: {_text(error)})"
        )
    if status == 404:
        return PrerequisiteError(f"Kaggle knows no competition {id!r} (Kaggle says: {_text(error)})")
    return PrerequisiteError(f"{id}: Kaggle refuses: {_text(error)}") if 400 <= status < 500 else None


def _pause(error: Any, failures: int) -> float:
    """Seconds to wait: as long as Kaggle asks, otherwise longer each time, with jitter so that clients spread out."""
    backoff = 2.0**failures * random.uniform(0.5, 1.0)
    requested = error.response.headers.get("Retry-After", "") if error.response is not None else ""
    return min(max(backoff, retry_after_seconds(requested) or 0.0), LONGEST_WAIT)


def _text(error: Exception) -> str:
    """An error's text in one line, without the query of links to the storage, which would let anyone read the file."""
    return re.sub(r"\?\S+", "", " ".join(str(error).split()))[:300] or type(error).__name__
