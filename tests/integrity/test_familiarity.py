"""How well a model knows competitions: against a model on loopback that knows some texts but not others."""

import json
import random
import re
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from support.endpoints import KEY, QUICK, Call, Endpoint
from support.familiarity_simulation import SHARES, coverage, coverage_of_correlation, coverage_unpaired, guesses
from support.memorizing_model import LIKELY, UNLIKELY, Knowing, chat, prose, table, telling
from support.run_fixtures import Mlebench

from mlebench.cli.inspect import command
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.data.sources import TwinSource
from mlebench.gateway.access import plan_access
from mlebench.integrity.familiarity import originals
from mlebench.integrity.familiarity.completion import similarity
from mlebench.integrity.familiarity.deadlines import Deadline, deadline_of, parse_cutoff, read_meta_kaggle
from mlebench.integrity.familiarity.effects import mean_difference, rank_correlation
from mlebench.integrity.familiarity.originals import Original, find_originals, prose_of_all
from mlebench.integrity.familiarity.performance import Correlation, Point, correlate
from mlebench.integrity.familiarity.plot import in_terminal, svg
from mlebench.integrity.familiarity.probes import (
    HEADER,
    KINDS,
    PASSAGE,
    ROW,
    TableHead,
    cells,
    common_sentences,
    probes_of,
    sentences_of,
)
from mlebench.integrity.familiarity.studied_model import StudiedModel, tokens_of
from mlebench.integrity.familiarity.study import Familiarity, FamiliarityStudy, StudyOptions
from mlebench.integrity.model_endpoint import ModelEndpoint
from mlebench.registry import Competition, Registry

KNOWN, UNKNOWN = "aerial-cactus-identification", "leaf-classification"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Original texts and tables of two competitions."""
    for seed, id in enumerate((KNOWN, UNKNOWN)):
        folder = tmp_path / "texts" / id
        folder.mkdir(parents=True)
        (folder / "overview.md").write_text(prose(seed))
        (folder / "train.csv").write_text(table(seed))
    return tmp_path / "texts"


@pytest.fixture
def knowing(texts: Path) -> Knowing:
    """A model that has read all about one of them."""
    return Knowing(*(path.read_text() for path in sorted((texts / KNOWN).iterdir())))


@pytest.fixture
def real(tmp_path: Path) -> Registry:
    """A data directory for real data."""
    return Registry(tmp_path / "data")


def model_at(server: Endpoint, folder: Path, **options: Any) -> StudiedModel:
    access = plan_access(["m"], {}, provider="openai", endpoint=server.url, **options)
    return StudiedModel(ModelEndpoint(access, folder / "calls", QUICK, name="the model"), folder / "answers")


def survey(model: StudiedModel, texts: Path, registry: Registry, *ids: str, samples: int = 12) -> list[Familiarity]:
    asked = FamiliarityStudy(StudyOptions(texts=texts, samples=samples, model=model))
    return [asked.measure(registry.get_competition(id)) for id in ids or (KNOWN, UNKNOWN)]


# Deadlines


@pytest.mark.parametrize(
    ("cutoff", "side"),
    [("2019-07", "before"), ("2019-07-08", "before"), ("2019-07-07", "after"), ("2019-06", "after")],
)
def test_a_deadline_is_before_or_after_the_cutoff(cutoff: str, side: str, real: Registry) -> None:
    deadline = deadline_of(real.get_competition(KNOWN), {})
    assert (deadline.day, deadline.source) == (date(2019, 7, 8), "config.yaml")
    assert deadline.against(parse_cutoff(cutoff)) == side
    assert deadline.against(None) == Deadline().against(parse_cutoff(cutoff)) == "unknown"


@pytest.mark.parametrize("text", ["", "2024", "2024-13", "2024-02-30", "June 2024", "2024-6"])
def test_a_cutoff_that_is_not_a_date_is_refused(text: str) -> None:
    with pytest.raises(PrerequisiteError, match="2024-06-30"):
        parse_cutoff(text)


def test_meta_kaggle_fills_in_unknown_deadlines(tmp_path: Path, real: Registry) -> None:
    file = tmp_path / "Competitions.csv"
    rows = ["spaceship-titanic,02/28/2030 23:59:00", f"{KNOWN},01/01/2001 00:00:00", "ai4code,2022-11-10", "odd,never"]
    file.write_text("\n".join(["Slug,DeadlineDate", *rows]), encoding="utf-8-sig")
    meta = read_meta_kaggle(file)
    found = {id: deadline_of(real.get_competition(id), meta) for id in ("spaceship-titanic", KNOWN)}
    assert (found["spaceship-titanic"].day, found["spaceship-titanic"].source) == (date(2030, 2, 28), "Meta Kaggle")
    assert found[KNOWN].day == date(2019, 7, 8)
    assert meta["ai4code"] == date(2022, 11, 10)
    assert "odd" not in meta


@pytest.mark.parametrize("content", [b"", b"Id,Title\n1,2\n", b"Slug,DeadlineDate\n\xff\xfe,1\n", None])
def test_a_file_that_is_not_meta_kaggles_is_refused(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PrerequisiteError, match=r"x\.csv"):
        read_meta_kaggle(file)


# Originals


def test_originals_come_from_texts_and_from_real_raw_data(tmp_path: Path, real: Registry) -> None:
    competition = real.get_competition(KNOWN)
    (tmp_path / "texts").mkdir()
    (tmp_path / f"texts/{KNOWN}.txt").write_text("What the makers wrote.")
    competition.raw_dir.mkdir(parents=True)
    (competition.raw_dir / "train.csv").write_text("id,has_cactus\r\na,1\r\n")
    (competition.raw_dir / "a.jpg").write_bytes(b"\xff\xd8")
    found = find_originals(competition, tmp_path / "texts").originals
    assert found == [
        Original(f"{KNOWN}.txt", "What the makers wrote."),
        Original("train.csv", "id,has_cactus\na,1\n"),
    ]


def test_originals_also_come_from_archives_and_zipped_tables_in_them(tmp_path: Path, real: Registry) -> None:
    competition = real.get_competition(UNKNOWN)
    competition.paths.root.mkdir(parents=True)
    inner = tmp_path / "train.csv.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("train.csv", "id,species\n1,oak\n")
    with zipfile.ZipFile(competition.paths.archive, "w") as archive:
        archive.write(inner, "train.csv.zip")
        archive.writestr("sample_submission.csv", "id,oak\n2,1\n")
    found = find_originals(competition, None).originals
    assert [(one.name, one.text) for one in found] == [
        ("train.csv", "id,species\n1,oak\n"),
        ("sample_submission.csv", "id,oak\n2,1\n"),
    ]


def test_a_twin_is_never_an_original(titanic: Competition, tmp_path: Path, real: Registry) -> None:
    found = find_originals(titanic, None)
    assert not found.originals
    assert found.reason
    assert "twin" in found.reason
    # not even if it is given as texts, or is in a data directory of real data
    found = find_originals(real.get_competition(titanic.id), titanic.paths.data_dir)
    assert not found.originals
    assert found.reason
    assert "twin" in found.reason
    moved = Registry(tmp_path / "moved").get_competition(titanic.id)
    TwinSource().fetch(moved)
    paths.data_dir_record(moved.paths.data_dir).unlink()
    found = find_originals(moved, moved.paths.data_dir)
    assert not found.originals
    assert found.reason
    assert found.reason.count("is a twin's") == 2
    linked = Registry(tmp_path / "linked").get_competition(titanic.id)
    linked.paths.root.mkdir(parents=True)
    linked.raw_dir.symlink_to(moved.raw_dir)
    assert not find_originals(linked, None).originals
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / titanic.id).symlink_to(moved.raw_dir)
    assert not find_originals(real.get_competition(titanic.id), tmp_path / "texts").originals


def test_our_own_description_is_never_an_original(tmp_path: Path, real: Registry) -> None:
    competition = real.get_competition(KNOWN)
    for text in (competition.description, competition.obfuscated_description.replace("\n", "\n\n")):
        (tmp_path / f"{KNOWN}.md").write_text(text)
        found = find_originals(competition, tmp_path)
        assert not found.originals
        assert found.reason
        assert "our own description" in found.reason


@pytest.mark.parametrize(
    ("description", "source", "taken"), [("original", "kaggle", 1), ("ours", "kaggle", 0), ("original", "twin", 0)]
)
def test_kaggles_own_page_is_an_original_where_data_was_prepared_with_it(
    description: str, source: str, taken: int, real: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    competition = real.get_competition(KNOWN)
    competition.public_dir.mkdir(parents=True)
    (competition.public_dir / paths.DESCRIPTION).write_text("What Kaggle says.")
    monkeypatch.setattr(originals, "description_kind", lambda _: description)
    monkeypatch.setattr(originals, "source_kind", lambda _: source)
    assert [one.text for one in find_originals(competition, None).originals] == ["What Kaggle says."] * taken


def test_data_that_cannot_be_read_is_a_reason(real: Registry) -> None:
    competition = real.get_competition(KNOWN)
    competition.paths.root.mkdir(parents=True)
    competition.paths.archive.write_bytes(b"no zip at all")
    found = find_originals(competition, None)
    assert found.originals == []
    assert found.reason
    assert str(competition.paths.archive) in found.reason


# Probes


def test_cells_of_a_line_rejoin_to_the_line() -> None:
    assert cells('1,"a, ""b""",,x', ",") == ["1", '"a, ""b"""', "", "x"]


@given(st.lists(st.text(st.characters(exclude_characters='",\n')) | st.just('"x, ""y"""'), min_size=1, max_size=6))
def test_every_line_is_taken_apart_without_loss(row: list[str]) -> None:
    assert cells(",".join(row), ",") == row


def test_probes_are_pieces_of_the_original_and_controls_are_not() -> None:
    text, rows = prose(1), table(1)
    found = probes_of([Original("a.md", text), Original("train.csv", rows)], 10, "seed")
    assert {kind: sum(one.kind == kind for one in found) for kind in KINDS[:3]} == {HEADER: 1, ROW: 10, PASSAGE: 10}
    assert found == probes_of([Original("a.md", text), Original("train.csv", rows)], 10, "seed")
    whole = " ".join(sentences_of(text))
    for one in found:
        original, control = one.shown + one.target, one.control_shown + one.control_target
        if one.kind == PASSAGE:
            assert original in whole
            assert control not in whole
            assert all(piece in whole for piece in sentences_of(control))
        elif one.kind == ROW:
            header, lines = original.split("\n", 1)
            assert rows.startswith(header)
            assert lines in rows
            made = [line.split(",") for line in control.split("\n")[1:]]
            assert [line[0] for line in made] == [line.split(",")[0] for line in lines.split("\n")]  # ids count on
            assert all(",".join(line[1:]) in rows for line in made)  # apart from that, whole rows
            assert not set(map(tuple, made)) & {tuple(line.split(",")) for line in lines.split("\n")}
        else:
            assert rows.startswith(original)
            assert sorted(control.split(",")) == sorted(original.split(","))
            assert control != original
            assert control.startswith("id,")


def test_numbered_columns_stay_in_order_so_that_a_control_is_as_easy_to_guess() -> None:
    names = ["id", *(f"f_{number:02}" for number in range(9)), "day", "target"]
    (probe,) = (one for one in probes_of([Original("t.csv", ",".join(names) + "\n")], 4, "s") if one.kind == HEADER)
    control = (probe.control_shown + probe.control_target).split(",")
    assert sorted(control) == sorted(names)
    assert control != names
    start = control.index("f_00")
    assert control[start : start + 9] == names[1:10]


def test_sentences_that_several_competitions_have_are_not_asked_for(tmp_path: Path) -> None:
    sentences = sentences_of(prose(5))
    dated = [f"On May {day}, 2023 we close this competition and look at it." for day in (3, 4)]
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "page.md").write_text(" ".join([*sentences[:30], dated[0]]))
    (tmp_path / "other.txt").write_text(dated[1].replace("May", "June") + "\n" + "\n".join(sentences[20:]))
    common = common_sentences(prose_of_all(tmp_path))
    assert len(common) == 11
    found = probes_of([Original("a.md", " ".join(sentences))], 100, "s", common)
    asked = {one.target for one in found} | {one.control_target for one in found}
    assert asked
    assert not asked & set(sentences[20:30])


def test_rows_with_nothing_to_know_are_not_asked_about() -> None:
    sample = "id,label\n" + "".join(f"{number},0\n" for number in range(100))
    assert probes_of([Original("sample_submission.csv", sample)], 4, "s") == []


@pytest.mark.parametrize("text", ["", "\n", "a", "a,b,c,d,e", "x,x,x,x,x\n1,2,3,4,5", 'a,"b\nc",d\n1,2\n' * 30])
def test_odd_tables_make_no_probes_and_no_error(text: str) -> None:
    assert all(one.kind == HEADER for one in probes_of([Original("t.csv", text)], 4, "s"))
    assert isinstance(TableHead.of(Original("t.csv", text)).rows, list)


# How close an answer is


@pytest.mark.parametrize(
    "answer",
    [
        "3,oak,0.5",
        "  3,oak,0.5\n4,elm,0.7\n",
        "```csv\n3,oak,0.5\n```",
        "2,elm,0.1\n3,oak,0.5",
        "<think>2,elm? No.</think>\n3,oak,0.5",
        "id,kind,share\n1,fir,0.9\n2,elm,0.1\n3,oak,0.5",
    ],
)
def test_the_right_answer_counts_in_whatever_form_it_comes(answer: str) -> None:
    assert similarity(answer, "id,kind,share\n1,fir,0.9\n2,elm,0.1\n", "3,oak,0.5") == 1


def test_other_answers_count_for_less() -> None:
    shown, target = "1,fir\n2,elm\n", "3,oak"
    near, far = similarity("3,oat", shown, target), similarity("no idea", shown, target)
    assert 1 > near > far >= similarity("", shown, target) == 0
    assert similarity("2,elm", shown, "2,elm") == 1  # the line before once more may be right


# End to end


def test_the_difference_is_found_where_the_model_knows_the_text_and_only_there(
    server: Endpoint, texts: Path, knowing: Knowing, real: Registry, tmp_path: Path
) -> None:
    server.behave = chat(knowing)
    known, unknown = survey(model_at(server, tmp_path), texts, real)
    assert known.completion
    assert unknown.completion
    assert known.difference
    assert unknown.difference
    counts = known.completion.to_dict()["kinds"]
    assert known.difference.n == 25
    assert counts["row"]["word_for_word"] == counts["passage"]["word_for_word"] == 12
    assert known.difference.low
    assert known.difference.low > 0.3
    # it knows every original, so the difference is how far guesses of the controls fall short
    assert known.difference.value == pytest.approx(
        np.mean([1 - one.control for one in known.completion.of(*KINDS[:3])])
    )
    assert unknown.difference.low
    assert unknown.difference.low < 0 < (unknown.difference.high or 0)
    assert abs(unknown.difference.value) < 0.15
    for one in (known, unknown):
        placebo = one.completion.to_dict()["kinds"]["ours"]["difference"] if one.completion else {}
        assert placebo["low"] < 0 < placebo["high"]


def test_calls_are_bounded_and_never_made_twice(
    server: Endpoint, texts: Path, knowing: Knowing, real: Registry, tmp_path: Path
) -> None:
    server.behave = chat(knowing)
    first = survey(model_at(server, tmp_path), texts, real, samples=3)
    asked = len([one for one in server.seen if "chat" in one.path])
    assert asked <= 2 * 2 * (1 + 3 + 3 + 3)
    again = model_at(server, tmp_path)
    assert [one.to_dict() for one in survey(again, texts, real, samples=3)] == [one.to_dict() for one in first]
    assert len([one for one in server.seen if "chat" in one.path]) == asked
    # what was cut off is asked again, and nothing else
    (file,) = (tmp_path / "answers").iterdir()
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-2]) + "\n" + lines[-2][:20])
    survey(model_at(server, tmp_path), texts, real, samples=3)
    assert len([one for one in server.seen if "chat" in one.path]) == asked + 2


def test_a_pair_counts_when_both_were_answered(
    server: Endpoint, texts: Path, knowing: Knowing, real: Registry, tmp_path: Path
) -> None:
    talk, sent = chat(knowing), []

    def behave(call: Call) -> None:
        sent.append(call)
        if "chat" in call.path and len(sent) > 1:
            call.answer({"choices": []})
        else:
            talk(call)

    server.behave = behave
    (found,) = survey(model_at(server, tmp_path), texts, real, KNOWN, samples=3)
    assert found.completion
    assert found.completion.of(ROW, PASSAGE) == []
    assert found.completion.unanswered + len(found.completion.tested) == 10


def test_a_model_that_takes_no_temperature_is_asked_without(
    server: Endpoint, texts: Path, knowing: Knowing, real: Registry, tmp_path: Path
) -> None:
    talk = chat(knowing)

    def behave(call: Call) -> None:
        if "temperature" in call.body:
            call.answer({"error": {"message": "unsupported: temperature"}}, 400)
        else:
            talk(call)

    server.behave = behave
    (found,) = survey(model_at(server, tmp_path), texts, real, KNOWN, samples=3)
    assert found.difference
    assert found.difference.value > 0.3


def test_a_key_that_is_refused_ends_it(server: Endpoint, texts: Path, real: Registry, tmp_path: Path) -> None:
    server.behave = lambda call: call.answer({"error": {"message": "who are you?"}}, 401)
    with pytest.raises(PrerequisiteError, match="the model at http"):
        survey(model_at(server, tmp_path), texts, real)


def test_without_originals_a_competition_is_refused_and_nothing_is_sent(
    server: Endpoint, texts: Path, real: Registry, tmp_path: Path
) -> None:
    (found,) = survey(model_at(server, tmp_path), texts, real, "random-acts-of-pizza")
    assert found.refused
    assert "random-acts-of-pizza.md" in found.refused
    assert "no real raw data" in found.refused
    assert found.difference is None
    assert server.seen == []


# Probabilities


@pytest.mark.parametrize("way", ["echo", "prompt_logprobs"])
def test_known_texts_are_likelier_by_as_much_as_the_model_says(
    way: str, server: Endpoint, texts: Path, knowing: Knowing, real: Registry, tmp_path: Path
) -> None:
    server.behave = telling(knowing, way)
    known, unknown = survey(model_at(server, tmp_path), texts, real)
    found = {one.kind: one for one in known.likelihood}
    assert found.keys() == {ROW, PASSAGE}
    assert known.no_likelihood is None
    for one in found.values():
        assert one.probability.value == pytest.approx(LIKELY - UNLIKELY, abs=0.02)
        assert one.probability.low
        assert 0.4 < one.probability.low < one.probability.value
        assert one.min_k.value == pytest.approx(np.log(LIKELY / UNLIKELY), abs=0.06)
    for one in unknown.likelihood:
        assert (one.probability.low or 0) < 0 < (one.probability.high or 0)
        assert abs(one.min_k.value) < 0.05


def test_an_endpoint_without_log_probabilities_says_so_and_is_asked_once(
    server: Endpoint, texts: Path, knowing: Knowing, real: Registry, tmp_path: Path
) -> None:
    server.behave = chat(knowing)
    for one in survey(model_at(server, tmp_path), texts, real, samples=3):
        assert one.difference
        assert one.likelihood == ()
        assert one.no_likelihood
        assert "no log-probabilities" in one.no_likelihood
        assert "404" in one.no_likelihood
    assert sum("chat" not in seen.path for seen in server.seen) == 2  # one for each way of asking


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"choices": []},
        {"choices": [{"text": "x", "logprobs": None}], "usage": {"prompt_tokens": 3}},
        {"choices": [{"logprobs": {"token_logprobs": [-0.5]}}], "usage": {"prompt_tokens": 9}},  # of the answer alone
        {"choices": [{"logprobs": {"token_logprobs": [None, "x", -1]}}], "usage": {"prompt_tokens": 3}},
        {"choices": [{"logprobs": {"token_logprobs": [None, 2.0, -1]}}], "usage": {"prompt_tokens": 3}},
        {"choices": [{"prompt_logprobs": [None, None]}]},
        {"choices": [{"prompt_logprobs": [None, {}]}]},
        {"choices": [{"prompt_logprobs": [None]}]},
    ],
)
def test_answers_without_probabilities(answer: Any) -> None:
    assert tokens_of(answer) is None


def test_the_generated_token_does_not_count() -> None:
    told = {"choices": [{"logprobs": {"token_logprobs": [None, -1.0, -2, -9.0]}}], "usage": {"prompt_tokens": 3}}
    assert tokens_of(told) == [-1.0, -2.0]


# Estimates


@pytest.mark.parametrize("share", SHARES)
def test_the_interval_of_a_difference_holds_the_truth(share: float) -> None:
    pool, times = guesses(), 500
    for n in (8, 24):
        held = coverage(share, n, times, pool)
        assert held.coverage >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / times), (share, n)
        assert held.mean == pytest.approx(held.truth, abs=4 * 0.5 / np.sqrt(times * n))


def test_the_other_intervals_hold_the_truth() -> None:
    times = 500
    error = 3 * np.sqrt(0.95 * 0.05 / times)
    for share in (0.0, 0.1, 0.5):
        assert coverage_unpaired(share, 8, times).coverage >= 0.95 - error
    for rho in (0.0, 0.6):
        assert abs(coverage_of_correlation(rho, 22, times).coverage - 0.95) <= error + 0.01  # a little cautious


def test_two_values_are_too_few_for_an_interval() -> None:
    found = mean_difference([0.5, 0.7])
    assert (found.value, found.low, found.high, found.n) == (pytest.approx(0.6), None, None, 2)
    assert "too few" in str(found)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=10, max_size=40))
def test_rank_correlations_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    one, other = zip(*pairs, strict=True)
    found = rank_correlation(one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
    else:
        assert found
        assert found.value == pytest.approx(spearmanr(one, other)[0])
        assert found.low is not None
        assert found.high is not None
        assert -1 <= found.low <= found.value + 1e-9
        assert found.value - 1e-9 <= found.high <= 1


# Against performance


def points(number: int) -> list[Point]:
    rng = random.Random(number)
    return [Point(f"c{place}", place / number, rng.random()) for place in range(number)]


def test_too_few_competitions_give_no_correlation() -> None:
    (found,) = correlate([], {"a": {KNOWN: 0.5}})
    assert found.estimate is None
    assert found.refused == "0 competitions have both figures; at least 10 are needed"


def test_drawings_show_every_competition() -> None:
    shown = [Correlation("a <b> & c", points(12), rank_correlation([1, 2, 3], [1, 2, 4])), Correlation("d", [], None)]
    drawn = ElementTree.fromstring(svg(shown))
    assert len(drawn.findall(".//{*}circle")) == 12
    assert any("a <b> & c" in (text.text or "") for text in drawn.findall(".//{*}text"))
    lines = in_terminal([*points(12), Point("again", 0.0, points(12)[0].performance)])
    marks = "".join(re.sub(r"[^|]*\|", "", line) for line in lines[1:16])
    assert sorted(marks.replace(" ", "")) == ["2", *"o" * 11]


# The command


@pytest.fixture
def inspect(mlebench: Mlebench, tmp_path: Path, server: Endpoint) -> Callable[..., Any]:
    def call(*options: str, **more: Any) -> Any:
        data = ["--data-dir", str(tmp_path / "data")]
        return mlebench("inspect", *data, "familiarity", *options, env={"THE_KEY": KEY}, **more)

    return call


def test_the_command_compares_deadlines_offline(inspect: Callable[..., Any]) -> None:
    lines = inspect("--cutoff", "2017-01").stdout.splitlines()
    assert len(lines) == 1 + 82 + 2
    assert lines[0].split() == ["competition", "deadline", "cut-off"]
    assert lines[-1] == "Competitions: 8 closed before the cut-off, 73 after it, 1 unknown."


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        (["--model", "m", "--endpoint", "URL"], "--send-texts"),
        (["--endpoint", "URL", "--send-texts"], "--model"),
        (["--reports", "x.json"], "--model"),
        (["--model", "m", "--endpoint", "URL", "--send-texts", "--plot", "x.svg"], "--reports"),
    ],
)
def test_nothing_is_sent_unless_every_option_is_given(options: list[str], missing: str, server: Endpoint) -> None:
    done = CliRunner().invoke(command, ["familiarity", *(server.url if text == "URL" else text for text in options)])
    assert done.exit_code == 2
    assert missing in done.output.splitlines()[-1]
    assert server.seen == []


def test_the_command_measures_correlates_and_draws(
    inspect: Callable[..., Any], server: Endpoint, texts: Path, knowing: Knowing, tmp_path: Path
) -> None:
    server.behave = telling(knowing, "echo")
    ids = [id for id in Registry().get_split("low") if id not in (KNOWN, UNKNOWN, "random-acts-of-pizza")][:14]
    for number, id in enumerate(ids):
        (texts / f"{id}.md").write_text(prose(10 + number, 24))
    reports = [
        {"competition_id": id, "score": 0.5, "gold_threshold": 0.9, "valid_submission": True, "submission_exists": True}
        for id in (KNOWN, UNKNOWN, *ids)
    ]
    (tmp_path / "report.json").write_text(json.dumps({"competition_reports": reports}))
    model = ["--model", "m", "--endpoint", server.url, "--key-env", "THE_KEY", "--texts", str(texts), "--send-texts"]
    more = ["--reports", f"mine={tmp_path / 'report.json'}", "--plot", str(tmp_path / "plot.svg"), "--samples", "4"]
    done = inspect(*model, *more, KNOWN, UNKNOWN, *ids, "random-acts-of-pizza", "--cutoff", "2019-07")
    assert f"to m at {server.url}" in done.stderr
    assert "mine, familiarity against performance: Spearman" in done.stdout
    assert "n = 1" in done.stdout
    assert "random-acts-of-pizza" in done.stdout
    assert "has no random-acts-of-pizza.md" in done.stdout
    assert "our own descriptions" in done.stdout
    ElementTree.parse(tmp_path / "plot.svg")
    asked = len(server.seen)
    done = inspect(*model, *more, KNOWN, UNKNOWN, "--json", "-o", str(tmp_path / "found.json"))
    assert len(server.seen) == asked
    assert "0 calls" in done.stderr
    made = json.loads((tmp_path / "found.json").read_text())
    assert [one["competition"] for one in made["competitions"]] == [KNOWN, UNKNOWN]
    known = made["competitions"][0]["completion"]["difference"]
    assert known["low"] > 0.2
    assert known["n"] == 9
    assert made["correlations"][0]["refused"] == "2 competitions have both figures; at least 10 are needed"
    # the key goes to the endpoint and is written nowhere
    assert all(seen.headers["authorization"] == f"Bearer {KEY}" for seen in server.seen)
    assert not any(KEY in path.read_text() for path in tmp_path.rglob("*.json*"))
    for text in (
        done.stdout,
        done.stderr,
        CliRunner().invoke(command, ["familiarity", "--help"]).output,
        (tmp_path / "found.json").read_text(),
    ):
        assert "contaminat" not in text.lower()


def test_scores_on_twins_are_not_correlated(inspect: Callable[..., Any], server: Endpoint, tmp_path: Path) -> None:
    report = {"competition_id": KNOWN, "score": 0.5, "gold_threshold": 0.9, "source": "twin"}
    (tmp_path / "twin.json").write_text(json.dumps({"competition_reports": [report]}))
    options = ["--model", "m", "--endpoint", server.url, "--send-texts", "--reports", str(tmp_path / "twin.json")]
    assert "twins" in inspect(*options, code=1).stderr
    assert server.seen == []
