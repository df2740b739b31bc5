"""mlebench dev download-kernels"""

from collections import Counter
from collections.abc import Sequence

import click

from mlebench.cli.console import print_table, track
from mlebench.cli.invocation import Failures
from mlebench.cli.options import competitions_option, registry_at


@click.command("download-kernels")
@competitions_option
@click.option("--refresh-list", is_flag=True, help="First ask Kaggle which notebooks there are.")
def download_kernels(ids: Sequence[str], refresh_list: bool) -> None:
    """Download published notebooks.

    Without -c, those of all competitions. `inspect plagiarism` compares code with them. Notebooks that are already here
    are kept. The lists ship with the competitions and are not complete.
    """
    from mlebench.core.paths import kernels_dir
    from mlebench.data import kernels

    registry = registry_at(None)
    failures = Failures()
    counts: list[tuple[str, Counter[str]]] = []
    for id in track(ids or registry.list_competition_ids(), str):
        count: Counter[str] = Counter()
        counts.append((id, count))
        with failures.of(id):
            competition = registry.get_competition(id)
            if refresh_list:
                kernels.refresh_kernel_list(competition)
            for name, state in kernels.download_kernels(competition):
                count[state] += 1
                if state not in (kernels.DOWNLOADED, kernels.PRESENT):
                    click.echo(f"{id}: {ascii(name)[1:-1]}: {state}")
    rows = [[id, *(count[state] for state in kernels.STATES)] for id, count in counts]
    print_table(["competition", *kernels.STATES], rows)
    click.echo(f"Notebooks are in {kernels_dir('<competition>')}")
    failures.finish()
