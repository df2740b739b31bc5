"""How runs ended, one category each: what to fix first. The rules are in `rules`."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.isolate import IsolatedCallError
from mlebench.core.outcomes import (
    AGENT_ERROR,
    CANCELLED,
    FINISHED,
    GRADED,
    INFRA_ERROR,
    INVALID,
    MISSING,
    MODEL_UNAVAILABLE,
    OUT_OF_MEMORY,
    OVER_DISK,
    TIMEOUT,
    UNGRADED_STATUSES,
)
from mlebench.core.untrusted import plain
from mlebench.data.state import data_identity, preparation_fault
from mlebench.grade.leaderboard import AT_OPTIMUM
from mlebench.integrity.failures.crashes import Crash, find_crash, lines_of, logs_in_order
from mlebench.integrity.failures.rules import (
    ANY,
    BELOW,
    DISK,
    GAP_FACTOR,
    GAP_LEAST,
    MEMORY,
    OTHER,
    RULES,
    CategoryRule,
)
from mlebench.integrity.failures.submission_values import BEST_IS_ONE, error_of, misread, trivial, turned_round
from mlebench.integrity.failures.validations import Validation, last_validation
from mlebench.integrity.isolated import inspect_isolated
from mlebench.integrity.subjects import Subject
from mlebench.records.findings import NOT_GRADED, NOTE, VIOLATION, Evidence, Finding, Findings, read_findings
from mlebench.records.report import Report
from mlebench.records.run import NONE
from mlebench.registry import Competition, Registry

TOOL, RULES_TOOL = "failures", "rules"
SHOWN_LINES = 10  # shown for a run that matches no rule
LONGEST = 300
IMPLIED = ("no_submission", "unfinished", NOT_GRADED)  # not worth mentioning alongside another category


@dataclass(frozen=True)
class Reason:
    """Why a rule applies."""

    says: str
    evidence: tuple[Evidence, ...] = ()
    cause: str | None = None


@dataclass(frozen=True)
class Classification:
    category: str
    says: str
    cause: str | None = None
    also: tuple[str, ...] = ()  # what else applies
    evidence: tuple[Evidence, ...] = ()
    last_lines: tuple[str, ...] = ()  # if no rule applies
    unread: str | None = None  # why its logs and submission were not inspected

    def findings(self) -> Findings:
        facts: dict[str, Any] = {"category": self.category, "says": self.says, "also": list(self.also)}
        if self.cause:
            facts["cause"] = self.cause
        if self.last_lines:
            facts["last_lines"] = list(self.last_lines)
        findings = [Finding(NOTE, self.category, self.says, self.evidence)]
        if self.unread:
            facts["unread"] = self.unread
            findings.append(
                Finding(NOTE, "not-inspected", f"Its logs and its submission were not read: {self.unread}.")
            )
        return Findings.of(TOOL, findings, **facts)


@dataclass(frozen=True)
class RunFacts:
    """What is facts about a run; missing parts are empty."""

    subject: Subject
    competition: Competition | None = None

    @cached_property
    def ended(self) -> str | None:
        return self.subject.run.record.ended if self.subject.run else None

    @cached_property
    def detail(self) -> str:
        return (self.subject.run.record.detail if self.subject.run else None) or ""

    @cached_property
    def report(self) -> Report:
        """The report of the run, or a blank one."""
        return (self.subject.run and self.subject.run.record.report) or Report(competition_id=self.subject.competition)

    @property
    def status(self) -> str | None:
        return self.report.status

    @property
    def graded(self) -> bool:
        return self.status == GRADED

    def may_name(self, rule: CategoryRule) -> bool:
        """Whether a rule that applies may name the category."""
        good = self.report.above_median or self.report.any_medal
        return not self.graded or rule.of == ANY or (rule.of == BELOW and not good)

    @cached_property
    def score(self) -> float | None:
        score = self.report.score
        return score if self.graded and score is not None and math.isfinite(score) else None

    @cached_property
    def crash(self) -> Crash | None:
        """The crash, if any. A program that ended well and has a score recovered from whatever it printed."""
        if self.ended not in (None, FINISHED, AGENT_ERROR) or (self.graded and self.ended != AGENT_ERROR):
            return None
        return find_crash(self.subject.logs, failed=self.ended == AGENT_ERROR, detail=self.detail)

    @cached_property
    def trivial(self) -> str | None:
        if self.subject.submission is None or (self.subject.run and not self.graded):
            return None
        return trivial(self.subject.submission, self.competition)

    @cached_property
    def validation(self) -> Validation | None:
        return last_validation(self.subject.logs)


def classify(subject: Subject, registry: Registry | None = None) -> Classification:
    """The category of a run, and what else applies to it."""
    facts = RunFacts(subject, _competition(subject, registry))
    fitting = [(rule, reason) for rule in RULES if (reason := REASONS[rule.category](facts))]
    chosen = next((fit for fit in fitting if facts.may_name(fit[0])), None)
    if chosen is None:
        return Classification(OTHER.category, facts.detail or "no rule fits", last_lines=_last_lines(subject))
    rule, reason = chosen
    also = (fit.category for fit, _ in fitting if fit is not rule and fit.category not in IMPLIED)
    return Classification(rule.category, plain(reason.says[:LONGEST]), reason.cause, tuple(also), reason.evidence)


def classify_isolated(subject: Subject, registry: Registry, **limits: int) -> Classification:
    """Classify a run in an isolated process; if that fails, from its records alone."""
    try:
        return inspect_isolated(_classify, (subject, registry), **limits)
    except IsolatedCallError as error:
        if subject.run is None:
            return Classification(OTHER.category, "it could not be inspected", unread=str(error))
        return replace(classify(replace(subject, logs=(), submission=None), registry), unread=str(error))


def _classify(subject_and_registry: tuple[Subject, Registry]) -> Classification:
    return classify(*subject_and_registry)


def _competition(subject: Subject, registry: Registry | None) -> Competition | None:
    """The competition, with the data that the run used."""
    if subject.group and subject.group.record.data_dir:
        registry = Registry(subject.group.record.data_dir, subject.group.record.profile)
    try:
        return registry.get_competition(subject.competition) if registry else None
    except PrerequisiteError:
        return None


def _last_lines(subject: Subject) -> tuple[str, ...]:
    for source in logs_in_order(subject.logs):
        if lines := lines_of(source):
            return tuple(line[:LONGEST] for line in lines[-SHOWN_LINES:])
    return ()


# Why a rule applies to a run, or None

REASONS: dict[str, Callable[[RunFacts], Reason | None]] = {}  # by category


def applies(category: str) -> Callable[[Callable[[RunFacts], Reason | None]], Callable[[RunFacts], Reason | None]]:
    """Register the function that says why the rule of a category applies."""
    return lambda function: REASONS.setdefault(category, function)


@applies(MODEL_UNAVAILABLE)
def _model_unavailable(facts: RunFacts) -> Reason | None:
    if facts.ended != MODEL_UNAVAILABLE:
        return None
    usage = facts.subject.run.record.model if facts.subject.run else None
    outage = usage and usage.unavailable
    return Reason(facts.detail or "no call to the model succeeded", cause=plain(outage.cause)[:40] if outage else None)


@applies("infrastructure")
def _infrastructure(facts: RunFacts) -> Reason | None:
    if facts.ended == INFRA_ERROR:
        return Reason(facts.detail or "the infrastructure failed")
    if facts.status in UNGRADED_STATUSES:
        return Reason(f"it was not graded: {facts.report.reason or facts.status}")
    return None


@applies(CANCELLED)
def _cancelled(facts: RunFacts) -> Reason | None:
    run = facts.subject.run
    last = run.record.last_attempt if run and not run.record.is_final else None
    return Reason(last.detail or "it was stopped") if last and last.ended == CANCELLED else None


@applies("unfinished")
def _unfinished(facts: RunFacts) -> Reason | None:
    run = facts.subject.run
    if run and run.fault:
        return Reason(f"its record is damaged: {run.fault}")
    return Reason(f"the run is {run.state}") if run and not run.record.is_final and not _cancelled(facts) else None


@applies(TIMEOUT)
def _timeout(facts: RunFacts) -> Reason | None:
    return Reason(facts.detail or "the time limit was reached") if facts.ended == TIMEOUT else None


@applies(OUT_OF_MEMORY)
def _out_of_memory(facts: RunFacts) -> Reason | None:
    if facts.ended == OUT_OF_MEMORY:
        return Reason(facts.detail or "there was not enough memory")
    if facts.crash and facts.crash.cause == MEMORY:
        return Reason(facts.crash.says, facts.crash.evidence)
    kills = facts.subject.run.record.conditions.used.oom_kills if facts.subject.run else None
    return Reason(f"the kernel killed {kills} of its processes because memory ran out") if kills else None


@applies(OVER_DISK)
def _over_disk(facts: RunFacts) -> Reason | None:
    if facts.ended == OVER_DISK:
        return Reason(facts.detail or "too much was written")
    return Reason(facts.crash.says, facts.crash.evidence) if facts.crash and facts.crash.cause == DISK else None


@applies("invalid_format")
def _invalid_format(facts: RunFacts) -> Reason | None:
    return Reason(facts.report.reason or "the submission is invalid") if facts.status == INVALID else None


@applies("crashed")
def _crashed(facts: RunFacts) -> Reason | None:
    if facts.crash is None:
        return Reason(facts.detail) if facts.graded and facts.ended == AGENT_ERROR else None
    if facts.crash.cause in (MEMORY, DISK) and not facts.graded:
        return None
    return Reason(facts.crash.says, facts.crash.evidence, facts.crash.cause)


@applies("no_submission")
def _no_submission(facts: RunFacts) -> Reason | None:
    run = facts.subject.run
    missing = run.record.submission == NONE if run else facts.subject.submission is None
    if not missing and facts.status != MISSING:
        return None
    return Reason(facts.detail or "the agent ended without having submitted anything")


@applies("trivial")
def _trivial(facts: RunFacts) -> Reason | None:
    return Reason(facts.trivial) if facts.trivial else None


@applies("metric_misunderstood")
def _metric_misunderstood(facts: RunFacts) -> Reason | None:
    if facts.score is None or facts.competition is None or facts.report.above_median or facts.trivial:
        return None
    submission, data = facts.subject.submission, facts.report.data
    if submission and preparation_fault(facts.competition) is None and data in (None, data_identity(facts.competition)):
        says = misread(submission, facts.score, facts.competition)  # with the data it was graded with
    else:
        says = turned_round(facts.score, facts.competition)
    return Reason(says) if says else None


@applies("validation_gap")
def _validation_gap(facts: RunFacts) -> Reason | None:
    validation, score, competition = facts.validation, facts.score, facts.competition
    if (
        validation is None
        or score is None
        or competition is None
        or validation.higher_is_better is competition.lower_is_better
    ):
        return None  # a metric with the opposite direction is a different metric
    if not competition.lower_is_better and score <= BEST_IS_ONE < validation.value:
        return None
    error, expected = error_of(score, competition), error_of(validation.value, competition)
    if error <= GAP_FACTOR * expected or error - expected < GAP_LEAST * (
        abs(score) if competition.lower_is_better else 1
    ):
        return None
    says = f"its own validation said {validation.metric} {validation.value:g}; the score is {score:g}"
    return Reason(says, (Evidence(validation.file, validation.quote),))


@applies("below_median")
def _below_median(facts: RunFacts) -> Reason | None:
    if not facts.graded or facts.report.above_median or facts.report.any_medal:
        return None
    return Reason(f"score {_number(facts.report.score)}, median {_number(facts.report.median_threshold)}")


@applies("suspicious")
def _suspicious(facts: RunFacts) -> Reason | None:
    findings = read_findings(facts.subject.run) if facts.subject.run else ()
    rules = (finding for record in findings if record.tool == RULES_TOOL for finding in record.findings)
    if broken := next((rule for rule in rules if rule.kind == VIOLATION), None):
        return Reason(f"{RULES_TOOL}: {broken.says}")
    doubt = facts.report.suspicious
    # Human scores say little about a twin, which is easier than the real data.
    if doubt is None or (facts.report.source == "twin" and AT_OPTIMUM not in doubt):
        return None
    return Reason(f"score {_number(facts.report.score)} is {doubt}")


@applies("medal")
def _medal(facts: RunFacts) -> Reason | None:
    if not facts.report.any_medal:
        return None
    return Reason(f"{facts.report.medal or 'a'} medal, score {_number(facts.report.score)}")


@applies("above_median")
def _above_median(facts: RunFacts) -> Reason | None:
    if not facts.report.above_median or facts.report.any_medal:
        return None
    return Reason(f"score {_number(facts.report.score)}, median {_number(facts.report.median_threshold)}")


@applies(NOT_GRADED)
def _not_graded(facts: RunFacts) -> Reason | None:
    if facts.status is None and facts.subject.submission is not None and facts.ended is None:
        return Reason("there is a submission that has not been graded")
    return None


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "unknown"
