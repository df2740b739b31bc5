"""A headless Chromium for tests of pages."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# It contacts nobody: this machine may have no network, and a test must not depend on one.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
IN_A_BROWSER = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: the pages are not tried in a browser"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET), timeout=120_000)
        yield launched
        launched.close()
