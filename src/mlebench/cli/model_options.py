"""The options of `mlebench run` that say which model a run may use."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.gateway.access import PROVIDERS

if TYPE_CHECKING:
    from mlebench.records.group import ModelFacts
    from mlebench.run.request import ModelRequest

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
        type=click.Choice(PROVIDERS),
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


def model_request(options: dict[str, Any], earlier: "ModelFacts | None" = None) -> "ModelRequest | None":
    """The requested access to models: an earlier group's, with the changes that the options make; None without any."""
    from mlebench.gateway.prices import read_prices
    from mlebench.run.request import ModelRequest

    changes = {name: options[name] for name in NAMES if options[name]}
    if "prices" in changes:
        changes["prices"] = read_prices(changes["prices"])
    if not changes:
        return None
    request = ModelRequest.like(earlier) if earlier else ModelRequest()
    if earlier and "prices" in changes:
        changes["prices"] = {**request.prices, **changes["prices"]}
    return replace(request, **changes)
