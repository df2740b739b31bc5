"""mlab: a model thinks, acts and looks at the result, until it is done or its steps, time or budget are used up.

It is made to be read and changed. model.py asks the model, actions.py holds what the agent can do, journal.py writes
things down, prompts/ holds what the model is told. All of it needs only the standard library.
"""

import argparse
import io
import os
import sys
import time
from pathlib import Path
from typing import Any

from actions import SHOWN, ActionError, Actions, parse, prompt
from journal import Journal, shortened
from model import BudgetOverError, ChatModel, ModelGoneError, TimeOverError

STARTED = time.monotonic()
MOST_WITHOUT_ACTION = 5  # answers in a row without an action
RESERVE = 60.0  # seconds before the end in which nothing new starts; a fifth of a short time limit


def main() -> None:
    options = _options()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a model may send half a character
    work, logs = Path(os.environ["CODE_DIR"]), Path(os.environ["LOGS_DIR"])
    if not options.model or not os.environ.get("OPENAI_BASE_URL"):
        sys.exit("There is no model: run this agent with `--network model --model NAME`.")
    journal = Journal(logs)
    journal.note("start", agent="mlab", model=options.model)
    model = ChatModel(options.model, options.patience_seconds, seconds_left)
    agent = ResearchAgent(journal, model, work, options)
    failed = False
    try:
        reason = agent.work()
    except BudgetOverError:
        reason = "the budget for the model is used up"
    except TimeOverError:
        reason = "the time is used up"
    except ModelGoneError as error:
        reason, failed = str(error), True
    journal.note("end", reason=reason)
    print(f"End: {reason}", flush=True)
    # What was submitted counts either way. The exit code distinguishes a missing model from an agent that stopped.
    sys.exit(1 if failed else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--command-seconds", type=float, default=3600)
    parser.add_argument("--patience-seconds", type=float, default=900)
    parser.add_argument("--context-characters", type=int, default=200_000)
    parser.add_argument("--model", default=os.environ.get("MLEBENCH_MODEL"))
    return parser.parse_args()


def seconds_left() -> float:
    limit = float(os.environ.get("TIME_LIMIT_SECS", "86400"))
    return limit - min(RESERVE, limit / 5) - (time.monotonic() - STARTED)


class ResearchAgent:
    def __init__(self, journal: Journal, model: ChatModel, work: Path, options: argparse.Namespace):
        self._journal = journal
        self._model = model
        self._options = options
        self._work = work
        self._system = {
            "role": "system",
            "content": prompt("system.txt", command_seconds=f"{options.command_seconds:.0f}"),
        }
        self._actions = Actions(work, journal, self._ask_apart, options.command_seconds, seconds_left)

    def work(self) -> str:
        """Take steps until the end; return why it ended."""
        self._begin()
        without_action = 0
        while self._journal.steps < self._options.steps:
            if seconds_left() < 0:
                raise TimeOverError
            step = self._journal.steps + 1
            reply = self._model.ask([self._system, *self._journal.recent(self._options.context_characters)])
            self._journal.note("call", step, **reply.facts)
            self._journal.say("assistant", reply.text)
            try:
                thought, action = parse(reply.text)
            except ActionError as error:
                without_action += 1
                self._tell(step, reply.text, None)
                if without_action == MOST_WITHOUT_ACTION:
                    return f"no action was found in {MOST_WITHOUT_ACTION} answers in a row"
                self._observe(step, prompt("no_action.txt", fault=error))
                continue
            without_action = 0
            self._tell(step, thought, action)
            if action["action"] == "finish":
                return f"the model is done: {shortened(str(action.get('reason', '')), 500)}"
            self._observe(step, self._actions.carry_out(step, action))
        return "the steps are used up"

    def _begin(self) -> None:
        """A new conversation opens with the task. An interrupted one continues."""
        messages = self._journal.messages
        if not messages:
            self._journal.say("user", self._task())
        elif messages[-1]["role"] == "assistant":
            self._observe(self._journal.steps, "You were interrupted. Your last action may or may not have been done.")

    def _task(self) -> str:
        data = Path(os.environ["DATA_DIR"])
        files = [f"  {path.name}{'/' if path.is_dir() else ''}" for path in sorted(data.iterdir())[:100]]
        shelf = Path(os.environ.get("HOME", "/home")) / "knowledge"
        books = [f"  {path.name}" for path in sorted(shelf.iterdir())[:100]] if shelf.is_dir() else []
        return prompt(
            "task.txt",
            instructions=Path(os.environ["INSTRUCTIONS"]).read_text(encoding="utf-8"),
            description=(data / "description.md").read_text(encoding="utf-8"),
            work=self._work,
            data=data,
            files="\n".join(files),
            knowledge="\n".join(["", f"Material that you may use is in {shelf}:", *books, ""]) if books else "",
            steps=self._options.steps,
            time=_duration(seconds_left()),
        )

    def _tell(self, step: int, thought: str, action: dict[str, Any] | None) -> None:
        """Write a step to the log and the trajectory."""
        print(f"\n[{step}] {shortened(thought, 2000)}", flush=True)
        self._journal.note("thought", step, text=thought)
        if action:
            name = action["action"]
            text = "\n".join(str(value) for key, value in action.items() if key != "action")
            print(f"[{step}] {name}: {shortened(text, 500)}", flush=True)
            self._journal.note("action", step, name=name, text=text)

    def _observe(self, step: int, observation: str) -> None:
        print(shortened(observation, 2000), flush=True)
        progress = f"Step {step} of {self._options.steps} is done; {_duration(seconds_left())} are left."
        self._journal.say("user", f"{observation}\n\n{progress}")

    def _ask_apart(self, question: str) -> str:
        """A question outside the conversation."""
        reply = self._model.ask([{"role": "user", "content": question}])
        self._journal.note("call", self._journal.steps, **reply.facts)
        return shortened(reply.text, SHOWN)


def _duration(seconds: float) -> str:
    minutes = max(0, int(seconds)) // 60
    if minutes < 60:
        return f"{minutes} min" if minutes else "less than 1 min"
    return f"{minutes // 60} h {minutes % 60} min"


if __name__ == "__main__":
    main()
