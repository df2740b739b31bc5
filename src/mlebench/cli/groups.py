"""Verbs with subcommands."""

import click

from mlebench.cli.suggestions import hint


def refuse_json_before(context: click.Context, as_json: bool) -> None:
    """--json of a verb is not that of its commands."""
    if as_json and context.invoked_subcommand:
        raise click.UsageError(f"--json belongs after `{context.invoked_subcommand}`", context)


class VerbGroup(click.Group):
    """Suggests the command that was probably meant, as `mlebench` itself does; not every version of click does."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            those = f"choose from {', '.join(sorted(self.commands))}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint(args[0], self.commands, those)}", ctx)
        return super().resolve_command(ctx, args)
