"""Runs OpenHands on a competition. Runs in a sandbox, which is its workspace, with the packages of its venv."""
# pyright: reportMissingImports=false

import argparse
import os
import threading
from pathlib import Path
from typing import Any

from bench import (
    Clock,
    Trajectory,
    duration,
    fill,
    format_fault,
    is_budget,
    require_endpoint,
    require_model,
    task_texts,
)
from events import EventTranslator
from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.sdk.context.condenser import default_condenser
from openhands.sdk.conversation.exceptions import ConversationRunError
from openhands.sdk.conversation.state import ConversationExecutionStatus as Status
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.task_tracker import TaskTrackerTool
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr

ENV = os.environ
PROMPTS = Path(__file__).parent / "prompts"
SUBMISSION = Path(ENV["SUBMISSION_DIR"]) / "submission.csv"
REMINDERS = 3  # for a model that stops before it has submitted
ANSWER_SECONDS = 600


def main() -> int:
    options = read_options()
    clock = Clock(float(ENV["TIME_LIMIT_SECS"]))
    model = require_model(options.model, ENV)
    base_url, key = require_endpoint(ENV)
    trajectory = Trajectory(Path(ENV["LOGS_DIR"]) / "trajectory.jsonl")
    trajectory.tell("start", agent="openhands", model=model)
    # Whatever the model's name, `openai/` makes litellm talk to the gateway and never to a provider's own address.
    llm = LLM(model=f"openai/{model}", base_url=base_url, api_key=SecretStr(key), timeout=ANSWER_SECONDS)
    session = Session(llm, options, trajectory)
    end_in_time(clock, trajectory)
    task = fill(
        PROMPTS / "task.txt",
        code=ENV["CODE_DIR"],
        submission=str(SUBMISSION),
        limit=duration(clock.limit),
        quiet=str(options.quiet_seconds),
        **task_texts(ENV),
    )
    reason, code = session.run(task)
    finish(trajectory, reason, code)
    return code


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--quiet-seconds", type=int, required=True)
    parser.add_argument("--model")
    return parser.parse_args()


def end_in_time(clock: Clock, trajectory: Trajectory) -> None:
    """End the run before its clock does. Every event is on disk by then; the sandbox ends what still runs."""
    timer = threading.Timer(max(0.0, clock.left()), finish, (trajectory, "time", 0))
    timer.daemon = True
    timer.start()


def finish(trajectory: Trajectory, reason: str, code: int) -> None:
    """Exit at once: nothing still busy, such as a command in the terminal, can delay this."""
    trajectory.tell("end", reason=reason)
    print(f"the end: {reason}", flush=True)
    os._exit(code)


class Session:
    def __init__(self, llm: LLM, options: argparse.Namespace, trajectory: Trajectory):
        self._trajectory = trajectory
        self._story = EventTranslator(trajectory)
        self._steps = options.steps
        self._llms = [llm, llm.model_copy(update={"usage_id": "condenser"})]
        self._counted = [0, 0]
        self._submitted: float | None = None
        # Not tmux, even where it is installed: a run should not depend on what else a machine has.
        terminal = {"terminal_type": "subprocess", "no_change_timeout_seconds": options.quiet_seconds}
        tools = [
            Tool(name=TerminalTool.name, params=terminal),
            Tool(name=FileEditorTool.name),
            Tool(name=TaskTrackerTool.name),
        ]
        self._conversation: Any = Conversation(
            agent=Agent(llm=llm, tools=tools, condenser=default_condenser(self._llms[1])),
            workspace=ENV["CODE_DIR"],
            persistence_dir=Path(ENV["LOGS_DIR"]) / "openhands",
            callbacks=[self._heard],
            max_iteration_per_run=options.steps,
            visualizer=None,
        )

    def run(self, task: str) -> tuple[str, int]:
        """Return why it ended, and the exit code."""
        message = task
        for _ in range(1 + REMINDERS):
            self._conversation.send_message(message)
            self._conversation.max_iteration_per_run = self._steps - self._story.steps
            try:
                self._conversation.run()
            except ConversationRunError as error:
                return (f"budget: {error}", 0) if is_budget(error) else (f"no model: {error}", 1)
            status = self._conversation.state.execution_status
            if self._story.steps >= self._steps:
                return "steps", 0
            if status is not Status.FINISHED:
                return status.value, 0
            if not (state := self._unfinished()):
                return "finished", 0
            message = fill(PROMPTS / "go_on.txt", state=state)
        return "the model stopped", 0

    def _unfinished(self) -> str | None:
        """What to tell a model that stopped too early; None if it is done."""
        if not SUBMISSION.is_file():
            return f"There is no {SUBMISSION} yet."
        if fault := format_fault(SUBMISSION):
            return f"{SUBMISSION} has the wrong format: {fault}"
        return None

    def _heard(self, event: Any) -> None:
        fields = event.model_dump(mode="json")
        self._story.enter(fields)
        self._count_calls()
        self._story.event(fields)
        written = SUBMISSION.stat().st_mtime if SUBMISSION.is_file() else None
        if written is not None and written != self._submitted:
            self._submitted = written
            self._trajectory.tell_step("submission", path=str(SUBMISSION))

    def _count_calls(self) -> None:
        for index, llm in enumerate(self._llms):
            metrics = llm.metrics
            for usage in metrics.token_usages[self._counted[index] :]:
                took = next(
                    (latency for latency in metrics.response_latencies if latency.response_id == usage.response_id),
                    None,
                )
                self._story.call(usage.model_dump(mode="json"), took and round(took.latency, 3), None)
            self._counted[index] = len(metrics.token_usages)


if __name__ == "__main__":
    raise SystemExit(main())
