"""The runner's end of a gateway: starts its process, keeps it during the run, and ends it."""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.service import Service
from mlebench.gateway.access import ModelAccess

# Variables that hold a provider's address, with and without OpenAI's /v1.
_WITH_VERSION = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_BARE = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "ANTHROPIC_API_URL", "GOOGLE_GEMINI_BASE_URL")
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
MODEL_VARIABLE = "MLEBENCH_MODEL"


class GatewayProxy(Service):
    """A context manager: the gateway runs inside it, and leaves nothing but its records."""

    def __init__(self, token: str, access: ModelAccess, work: Path, seconds: float):
        self.access = access
        self.key_of_run = f"sk-mlebench-{secrets.token_urlsafe(24)}"
        spec = {
            "access": msgspec.to_builtins(access.facts()),
            "key": access.key(),
            "token": self.key_of_run,
            "use": str(paths.usage_file(work)),
            "trace": str(paths.model_calls(work)),
            "seconds": seconds,
        }
        hidden = {access.key_env} if access.key_env else set()
        super().__init__("the gateway", "mlebench.gateway.process", token, spec, hidden)

    def variables(self, port: int, asked_for: Mapping[str, str]) -> dict[str, str]:
        """The agent's variables. Secrets it asks for become its run's token, or addresses of the proxy."""
        root = f"http://127.0.0.1:{port}"
        fixed = {
            **dict.fromkeys(_WITH_VERSION, f"{root}/v1"),
            **dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), root),
            **dict.fromkeys(KEYS, self.key_of_run),
            MODEL_VARIABLE: self.access.models[0],
        }
        secrets = {}
        for variable, secret in asked_for.items():
            if _is_address(variable, secret):
                secrets[variable] = root if {variable, secret} & {*_BARE} else f"{root}/v1"
            else:
                secrets[variable] = self.key_of_run
        return secrets | fixed


def refuse_other_secrets(names: Iterable[tuple[str, str]]) -> None:
    """Other secrets are useless under `--network model`. Takes pairs of variable and secret."""
    for variable, secret in names:
        if not _is_key(variable, secret) and not _is_address(variable, secret):
            raise PrerequisiteError(
                f"the agent asks for the secret {secret}, which is not a model provider's key (…_API_KEY): "
                "no secret enters a sandbox with `--network model`; `--network full` would let it in"
            )


def _is_key(variable: str, secret: str) -> bool:
    return variable.endswith("_API_KEY") or secret.endswith("_API_KEY")


def _is_address(variable: str, secret: str) -> bool:
    return bool({variable, secret} & {*_WITH_VERSION, *_BARE})
