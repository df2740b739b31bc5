"""Bundles: a run group in one archive, for others to check. docs/reference/bundles.md says what is in one.

A bundle comes from a stranger. Nothing in it is executed, no name in it becomes a path on this machine, and its scores
are claims until the submissions have been graded here.
"""

from typing import TYPE_CHECKING

from mlebench.core.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from mlebench.bundles.archive import BundleRefusedError
    from mlebench.bundles.make import make_bundle
    from mlebench.bundles.reader import Bundle, read_bundle
    from mlebench.bundles.verify import record_verdict, verify_bundle
    from mlebench.records.bundle import BundleManifest, BundleVerdict

__all__ = [
    "Bundle",
    "BundleManifest",
    "BundleRefusedError",
    "BundleVerdict",
    "make_bundle",
    "read_bundle",
    "record_verdict",
    "verify_bundle",
]

__getattr__, __dir__ = lazy_imports(
    __name__,
    {
        "mlebench.bundles.archive": ("BundleRefusedError",),
        "mlebench.bundles.make": ("make_bundle",),
        "mlebench.bundles.reader": ("Bundle", "read_bundle"),
        "mlebench.bundles.verify": ("record_verdict", "verify_bundle"),
        "mlebench.records.bundle": ("BundleManifest", "BundleVerdict"),
    },
)
