"""Checks against golden figures: what another implementation made of the same twin."""

from collections.abc import Iterator

from mlebench.contract.case import Case


def golden_files(case: Case) -> Iterator[str]:
    """Prepared files are those of the golden figures."""
    found, expected = case.fingerprint, case.golden["files"] if case.golden else {}
    for name in sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name)):
        yield f"{name} is {found.get(name, 'missing')!s:.200}, golden is {expected.get(name, 'no such file')!s:.200}."


def golden_scores(case: Case) -> Iterator[str]:
    """Scores and verdicts are those of the golden figures."""
    found, expected = case.verdicts, case.golden["scores"] if case.golden else {}
    for name in sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name)):
        yield f"the submission {name!r} gets {found.get(name)}, golden is {expected.get(name)}."
