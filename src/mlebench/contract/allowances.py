"""What a competition tells the contract about itself: the key `contract` of its config.yaml."""

from dataclasses import dataclass, field, fields
from typing import Any

from mlebench.config import Keys, read_yaml
from mlebench.core.errors import ConfigError
from mlebench.core.paths import CONFIG
from mlebench.registry import Competition

# What must hold for a table that has columns of the truth yet gives nothing away.
ONE_ROW_PER, COLUMNS = "one_row_per", "columns"


@dataclass(frozen=True)
class Allowances:
    """Where the contract makes exceptions, and where it must be told what to look at."""

    accepts: list[str] = field(default_factory=list)  # faulty submissions that the grader accepts
    order_counts: bool = False  # the order of a submission's rows changes its score
    uncounted_rows: bool = False  # rows whose truth is negative or missing do not count
    secret_ids: bool = False  # which ids count is secret, so gold does not have all of them
    truth_is_an_order: bool = False  # the truth of a row is the order of public things
    renumbered: bool = False  # train and test are numbered separately, so equal ids mean nothing
    row_keys: list[str] = field(default_factory=list)  # columns that tell rows apart where there is no id
    joined_id: list[str] = field(default_factory=list)  # columns that, joined with _, are the id
    labels: dict[str, str] = field(default_factory=dict)  # public table with labels: its column with ids
    labelled_files: dict[str, str] = field(default_factory=dict)  # files whose path gives the label: files to predict
    harmless: dict[str, dict[str, Any]] = field(default_factory=dict)  # tables that hold truth but give nothing away
    closed_archives: list[str] = field(default_factory=list)  # the description need not explain what is in them
    absent: list[str] = field(default_factory=list)  # files that the description names, and agents do not find
    nothing_to_compare: str = ""  # why the search for leaks finds nothing to compare

    @classmethod
    def of(cls, competition: Competition) -> "Allowances":
        path = competition.folder / CONFIG
        values = read_yaml(path)
        own = values.get(competition.profile) or {}
        declared = Keys(path, {**values, **own}).get("contract", dict, default={})
        keys = Keys(path, declared, "contract.")
        keys.only({item.name for item in fields(cls)})
        default = cls()
        found = {}
        for name in declared:
            wanted = getattr(default, name)
            found[name] = keys.get(name, type(wanted), default=wanted)
        for name, condition in found.get("harmless", {}).items():
            if not isinstance(condition, dict) or len(condition) != 1 or not {*condition} <= {ONE_ROW_PER, COLUMNS}:
                raise ConfigError(
                    f"{path}: `contract.harmless.{name}` must be {ONE_ROW_PER}: COLUMN or {COLUMNS}: [...]"
                )
        return cls(**found)
