"""What `mlebench inspect` found about a run, in sentences. Records are trusted as little as code."""

from collections.abc import Iterator
from typing import Any

from mlebench.core.paths import FINDINGS
from mlebench.records.findings import KINDS, is_about
from mlebench.records.run import ENDED
from mlebench.records.run_groups import Run
from mlebench.web.facts import fact_rows, number_of
from mlebench.web.remains import json_of, listing, short
from mlebench.web.render import sentence
from mlebench.web.shared_code import SHARED_CODE

MOST_RECORDS, LARGEST = 20, 64 << 10
MOST_SENTENCES, MOST_QUOTES, LONGEST_QUOTE = 50, 5, 600


def findings(run: Run) -> Iterator[dict[str, Any]]:
    """For each tool its findings as sentences, and all that its record says; only the latter if it has another form."""
    if run.record.state != ENDED:
        return
    apart = run.paths.finding(SHARED_CODE).name  # has a section of its own
    names = [file for file in listing(run.paths.root, FINDINGS).files if file["path"] != apart]
    for file in [file for file in names if file["path"].endswith(".json")][:MOST_RECORDS]:
        record = json_of(run.paths.root, f"{FINDINGS}/{file['path']}", LARGEST)
        values = record if isinstance(record, dict) else {"found": record}
        made_at = values.get("made_at")
        if isinstance(made_at, str) and not is_about(run.record, made_at, values.get("facts")):
            continue
        yield {
            "name": file["name"].removesuffix(".json"),
            "made_at": made_at if isinstance(made_at, str) else None,
            "sentences": _sentences(values),
            "rows": fact_rows(values),
        }


def _sentences(record: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The findings of a record; None if it is not one of a tool of ours."""
    found = record.get("findings")
    if not isinstance(record.get("tool"), str) or not isinstance(found, list):
        return None
    facts = record.get("facts")
    category = facts.get("category") if isinstance(facts, dict) else None
    return [_sentence(finding, category) for finding in found[:MOST_SENTENCES] if isinstance(finding, dict)]


def _sentence(finding: dict[str, Any], category: Any) -> dict[str, Any]:
    kind, rule, says = finding.get("kind"), finding.get("rule"), short(finding.get("says") or "", 1000)
    if rule == category:  # what a run is counted as; the reason follows
        says = f"{rule.replace('_', ' ')}: {says}" if isinstance(rule, str) and rule and says else says or str(rule)
    quotes = finding.get("evidence")
    quotes = [quote for quote in quotes if isinstance(quote, dict)] if isinstance(quotes, list) else []
    return {
        "kind": kind if kind in KINDS else None,
        "rule": short(rule, 80) if rule and rule != category else None,
        "text": sentence(says),
        "quotes": [_quote(quote) for quote in quotes[:MOST_QUOTES]],
        "more_quotes": max(0, len(quotes) - MOST_QUOTES),
    }


def _quote(quote: dict[str, Any]) -> dict[str, Any]:
    line, text = number_of(quote.get("line")), quote.get("quote")
    text = text if isinstance(text, str) else ""
    return {
        "place": short(quote.get("file") or "", 120) + (f", line {line}" if line else ""),
        "text": text[:LONGEST_QUOTE] + ("…" if len(text) > LONGEST_QUOTE else ""),
    }
