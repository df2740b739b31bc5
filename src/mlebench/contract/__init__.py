"""What every competition must satisfy: one list of checks, for `mlebench test-competition` and for our own tests.

A check looks at a case and yields faults, each a sentence that says what to change. Its docstring says what holds when
there are none.
"""

from mlebench.contract.case import CompetitionCase
from mlebench.contract.checking import DATA, FACTS, GOLDEN, TEXT, CheckOutcome, ContractCheck, faults_of, run_contract

__all__ = [
    "DATA",
    "FACTS",
    "GOLDEN",
    "TEXT",
    "CheckOutcome",
    "CompetitionCase",
    "ContractCheck",
    "faults_of",
    "run_contract",
]
