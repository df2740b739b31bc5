"""The options of `mlebench run` that say which model a run may use."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mlebench.gateway.access import ModelAccess

_ENDPOINT: dict[str, Any] = {"metavar": "URL"}
_KEY: dict[str, Any] = {
    "metavar": "VARIABLE",
    "help": "The environment variable that holds the key. Default: the provider's, for its own endpoint.",
}
_BUDGET: dict[str, Any] = {"metavar": "5usd|200000tokens"}
_OPTIONS = (
    click.option(
        "--model",
        "models",
        multiple=True,
        metavar="NAME",
        help="A model that runs may use; may be repeated, and the first is the default.",
    ),
    click.option("--endpoint", **_ENDPOINT, help="The model's address. Default: its provider's."),
    click.option(
        "--provider",
        type=click.Choice(["openai", "anthropic"]),
        help="Whose API it speaks. Default: depends on endpoint and model.",
    ),
    click.option("--key-env", **_KEY),
    click.option("--budget", **_BUDGET, help="The most that each run may spend on models."),
    click.option("--prices", type=click.Path(dir_okay=False, path_type=Path), help="A JSON file of model prices."),
    click.option(
        "--allow-tool",
        "tools",
        multiple=True,
        metavar="NAME",
        help="A tool of the provider that runs may use, such as web_search; such runs are unsealed.",
    ),
    click.option(
        "--allow-field",
        "fields",
        multiple=True,
        metavar="NAME",
        help="A field or beta of requests that would be refused or removed, and is passed on; such runs are unsealed.",
    ),
)
NAMES = ("models", "endpoint", "provider", "key_env", "budget", "prices", "tools", "fields")


# For questions that are not a run's own.
_QUESTIONS = (
    click.option(
        "--endpoint",
        **_ENDPOINT,
        help="The model's address: any OpenAI-compatible endpoint. Default: OpenAI's.",
    ),
    click.option("--key-env", **_KEY),
    click.option("--budget", **_BUDGET, help="The most that may be spent on the model."),
)


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_QUESTIONS):
        command = option(command)
    return command


def model_access(options: dict[str, Any], named_by_agent: str | None) -> "ModelAccess | None":
    """What runs may use, with `--network model`; `like` is the access of the group to repeat."""
    from mlebench.gateway.access import plan_access
    from mlebench.gateway.prices import price_of, read_prices

    like: dict[str, Any] = options.get("like_model") or {}
    if options["network"] != "model":
        if any(options[name] for name in NAMES):
            raise click.UsageError("--model and the options that go with it need `--network model`")
        return None
    table = read_prices()
    table |= {model: price_of(entry, model) for model, entry in like.get("prices", {}).items()}
    if options["prices"]:
        table |= read_prices(options["prices"])
    models: Sequence[str] = options["models"] or like.get("models", ()) or ([named_by_agent] if named_by_agent else [])
    return plan_access(
        models,
        table,
        **{name: options[name] or like.get(name) for name in ("provider", "endpoint", "key_env", "budget")},
        **{name: options[name] or like.get(name, ()) for name in ("tools", "fields")},
    )
