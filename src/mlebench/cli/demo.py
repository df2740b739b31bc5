"""mlebench demo"""

import tempfile
from pathlib import Path

import click

from mlebench.cli.common import data_dir_option, print_table, registry_at, track
from mlebench.scoring import CompetitionReport

# One of each kind: tabular, text, images in zips, records, masks, given split, nested archives, grouped text.
COMPETITIONS = (
    "spaceship-titanic",
    "spooky-author-identification",
    "aerial-cactus-identification",
    "random-acts-of-pizza",
    "hubmap-kidney-segmentation",
    "detecting-insults-in-social-commentary",
    "nomad2018-predict-transparent-conductors",
    "text-normalization-challenge-english-language",
)


@click.command()
@data_dir_option
def command(data_dir: Path | None) -> None:
    """Make twins, prepare them, and grade their sample submissions."""
    from mlebench.data.pipeline import prepare
    from mlebench.data.sources import TwinSource
    from mlebench.grade import grade_csv
    from mlebench.kit import public_sample_bytes

    registry = registry_at(data_dir, twin=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for id in track(COMPETITIONS, str):
            competition = registry.get_competition(id)
            prepare(competition, TwinSource())
            submission = Path(folder) / f"{id}.csv"
            submission.write_bytes(public_sample_bytes(competition))
            report = grade_csv(submission, competition)
            rows.append(
                [id, competition.grader.name, report.score, *_thresholds(report), _medal(report), report.source]
            )
    print_table(["competition", "metric", "score", "gold", "silver", "bronze", "median", "medal", "data"], rows)
    click.echo(
        f"Twins are synthetic: these scores say nothing about real data. They are in {registry.get_data_dir()}",
        err=True,
    )


def _thresholds(report: CompetitionReport) -> list[float]:
    return [report.gold_threshold, report.silver_threshold, report.bronze_threshold, report.median_threshold]


def _medal(report: CompetitionReport) -> str:
    return next((kind for kind in ("gold", "silver", "bronze") if getattr(report, f"{kind}_medal")), "none")
