"""A run's use of a model, as its gateway counts it, and of packages, as their index does.

docs/guides/models.md and docs/reference/records.md describe every field.
"""

from pathlib import Path

import msgspec

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.untrusted import UntrustedFileError, open_untrusted, parse_json
from mlebench.records.base import Count, Name, Number, Seconds, Text

LARGEST = 1 << 20  # bytes of a file
LARGEST_OF_PACKAGES = 4 << 20


class CallCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of calls. None: some call did not report it."""

    calls: Count = 0
    failed: Count = 0
    retries: Count = 0
    calls_without_usage: Count = 0
    seconds: Seconds = 0.0
    input_tokens: Count | None = None  # with the cached ones
    cached_tokens: Count | None = None
    output_tokens: Count | None = None  # with those of reasoning
    reasoning_tokens: Count | None = None
    cost: Number | None = None  # in US dollars
    is_lower_bound: bool = False  # whether tokens and cost are too low


class BudgetUsage(msgspec.Struct, frozen=True, kw_only=True):
    limit: Number
    unit: Text
    used: Number = 0.0
    exceeded: bool = False
    used_up: Count = 0  # calls refused because of that
    not_enough: Count = 0  # calls refused because too little was left for them
    shortened: Count = 0  # calls whose answers were limited to what was left


class ModelOutage(msgspec.Struct, frozen=True, kw_only=True):
    """Why no call was ever answered."""

    cause: Text
    says: Text
    under_own_load: bool = False


class TraceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that are not, or not whole, in the trace."""

    cut: Count = 0
    left_out: Count = 0


class ModelUsage(CallCounts, frozen=True, kw_only=True):
    refused: Count = 0
    refusals: dict[str, Count] = {}
    removed_fields: dict[str, Count] = {}
    budget: BudgetUsage | None = None
    models: dict[str, CallCounts] = {}
    trace: TraceCounts | None = None
    unavailable: ModelOutage | None = None


def read_usage(work: Path) -> ModelUsage | None:
    """What an attempt has used so far. In a plain process, the agent could change this file."""
    try:
        with open_untrusted(paths.usage_file(work), LARGEST) as file:
            return msgspec.convert(parse_json(file.read(LARGEST)), ModelUsage)
    except (UntrustedFileError, ValueError, PrerequisiteError):  # msgspec's ValidationError is a ValueError
        return None


class FetchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel or source archive that a run got."""

    name: Name
    version: Text
    file: Name
    sha256: Text
    size: Count


class PackageUsage(msgspec.Struct, frozen=True, kw_only=True):
    files: list[FetchedFile] = []
    bytes: Count = 0
    requests: Count = 0
    refused: Count = 0
    refusals: dict[str, Count] = {}


def package_usage_text(usage: PackageUsage) -> str:
    return msgspec.json.encode(usage).decode()


def read_package_usage(work: Path) -> PackageUsage | None:
    """What an attempt has fetched so far. In a plain process, the agent could change this file."""
    try:
        with open_untrusted(paths.package_usage_file(work), LARGEST_OF_PACKAGES) as file:
            return msgspec.convert(parse_json(file.read(LARGEST_OF_PACKAGES)), PackageUsage)
    except (UntrustedFileError, ValueError, PrerequisiteError):
        return None
