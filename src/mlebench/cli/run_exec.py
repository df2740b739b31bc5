"""mlebench run exec"""

from pathlib import Path

import click


@click.command()
@click.argument("run_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--gpus", default="", help="The GPUs that this run gets, by index or UUID, separated by commas.")
def command(run_dir: Path, gpus: str) -> None:
    """Execute one planned run, from whatever state its folder is in.

    The exit code is 0 if its state is final, 75 if it may be tried again, 2 if it cannot work.
    """
    from mlebench.core.errors import PrerequisiteError
    from mlebench.run.execute import CANNOT_WORK, execute
    from mlebench.run.gpus import assigned

    try:
        code = execute(run_dir, assigned([name for name in gpus.split(",") if name]))
    except PrerequisiteError as error:
        click.echo(f"Error: {error}", err=True)
        code = CANNOT_WORK
    raise SystemExit(code)
