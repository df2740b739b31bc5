"""What a scripted model says to each coding command line: they have the same tools under other names."""

from typing import Any

_SHELLS = {
    "claude-code": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "gemini-cli": ("run_shell_command", "command"),
    "opencode": ("bash", "command"),
}
AGENTS = tuple(_SHELLS)
SUBMIT = "cp $SAMPLE_SUBMISSION $SUBMISSION_DIR/submission.csv"


def shell(agent: str, command: str, text: str = "", **keys: Any) -> dict[str, Any]:
    """An answer that calls the agent's tool for commands."""
    name, argument = _SHELLS[agent]
    arguments = {argument: command}
    if agent == "opencode":
        arguments["description"] = "what it does"
    return {"text": text, "tool_calls": [{"name": name, "arguments": arguments}], **keys}


def recorded_script(agent: str) -> list[dict[str, Any]]:
    """What the model said when the events of tests/agents/recorded_events were recorded."""
    usage = {"input": 1000, "cached": 200, "output": 50, "reasoning": 10}
    return [
        shell(agent, "echo seen; exit 3", "I look around.", usage=usage),
        {"text": "I search.", "tool_calls": [{"name": "WebSearch", "arguments": {"query": "answers"}}]},
        shell(agent, SUBMIT, "I submit."),
        {"status": 400, "text": "No more.", "repeat": True},
    ]
