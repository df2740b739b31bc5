"""Runs AIDE on a competition and submits its best program's output. Runs in a sandbox, with its venv's packages."""
# pyright: reportMissingImports=false

import argparse
import builtins
import multiprocessing
import os
import random
import shutil
import signal
import time
import traceback
import warnings
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import aide.agent
import aide.interpreter
from aide.interpreter import ExecutionResult
from aide.journal import Journal, Node
from aide.utils import config as aide_config
from aide.utils import data_preview
from bench import Clock, Trajectory, duration, fill, format_fault, require_endpoint, require_model, task_texts
from endpoint import ModelClient, ModelGoneError

ENV = os.environ
PROMPTS = Path(__file__).parent / "prompts"
SUBMISSION = Path(ENV["SUBMISSION_DIR"]) / "submission.csv"
FAILURES = 3  # steps in a row in which AIDE itself crashed
LEAST_SECONDS = 5.0  # with less than this, a program is not worth starting
PREVIEW_BYTES, PREVIEW_CHARACTERS = 1 << 30, 20_000


def main() -> int:
    options = read_options()
    clock = Clock(float(ENV["TIME_LIMIT_SECS"]))
    model = require_model(options.model, ENV)
    base_url, key = require_endpoint(ENV)
    random.seed(int(ENV["SEED"]))
    warnings.simplefilter("ignore")  # AIDE draws its tree after each step, which warns
    multiprocessing.set_start_method("fork")
    trajectory = Trajectory(Path(ENV["LOGS_DIR"]) / "trajectory.jsonl")
    trajectory.tell("start", agent="aide", model=model)
    # The only way out: whatever the model's name, AIDE's own clients are never used.
    aide.agent.query = ModelClient(base_url, key, clock, trajectory).query
    cfg = configure(options, model, options.feedback_model or model, min(options.program_seconds, clock.left()))
    task = fill(
        PROMPTS / "task.txt",
        data=ENV["DATA_DIR"],
        limit=duration(clock.limit),
        program=duration(cfg.exec.timeout),
        **task_texts(ENV),
    )
    search = TreeSearch(task, cfg, clock, trajectory)
    reason, code = search.run(options.steps)
    trajectory.tell("end", reason=reason)
    print(f"the end: {reason}", flush=True)
    return code


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--program-seconds", type=float, required=True)
    parser.add_argument("--drafts", type=int, required=True)
    parser.add_argument("--debug-depth", type=int, required=True)
    parser.add_argument("--debug-probability", type=float, required=True)
    parser.add_argument("--model")
    parser.add_argument("--feedback-model")
    return parser.parse_args()


def configure(options: argparse.Namespace, model: str, feedback_model: str, program_seconds: float) -> Any:
    """AIDE's configuration, and its workspace. Data is linked, not copied; archives are unpacked beside the links."""
    cfg: Any = aide_config._load_cfg(use_cli_args=False)
    home = Path(ENV["AGENT_DIR"])
    cfg.data_dir, cfg.log_dir, cfg.workspace_dir = ENV["DATA_DIR"], str(home / "log"), str(home / "workspace")
    cfg.goal, cfg.exp_name = "see the task", "run"
    cfg.copy_data = cfg.generate_report = False
    cfg.agent.steps, cfg.agent.search.num_drafts = options.steps, options.drafts
    cfg.agent.search.max_debug_depth, cfg.agent.search.debug_prob = options.debug_depth, options.debug_probability
    cfg.agent.code.model, cfg.agent.feedback.model = model, feedback_model
    cfg.exec.timeout = int(program_seconds)
    cfg = aide_config.prep_cfg(cfg)
    cfg.log_dir = Path(ENV["LOGS_DIR"]) / "aide"
    try:
        aide_config.prep_agent_workspace(cfg)
    except Exception:  # an archive that cannot be unpacked stays packed
        traceback.print_exc()
    return cfg


class ProgramInterpreter(aide.interpreter.Interpreter):
    """AIDE's interpreter, but programs run as `__main__` and are ended along with everything they started."""

    process: Any
    group: int

    def create_process(self) -> None:
        super().create_process()
        self.group = self.process.pid

    def child_proc_setup(self, result_outq: Any) -> None:
        os.setsid()
        super().child_proc_setup(result_outq)
        builtins.__name__ = "__main__"  # AIDE sets no __name__, and so skips `if __name__ == "__main__":`

    def end(self) -> None:
        with suppress(Exception):
            self.cleanup_session()
        with suppress(OSError):
            os.killpg(self.group, signal.SIGKILL)
        self.process = None


class TracedAgent(aide.agent.Agent):
    """AIDE's agent, but it writes a trajectory and tells the model which packages are really installed."""

    trajectory: Trajectory

    @property
    def _prompt_environment(self) -> dict[str, str]:
        names = sorted(f"{item.name} {item.version}" for item in metadata.distributions())
        return {"Installed packages": fill(PROMPTS / "packages.txt", packages=", ".join(names))}

    def update_data_preview(self) -> None:
        self.data_preview = preview(Path(self.cfg.workspace_dir))

    def plan_and_code_query(self, prompt: Any, retries: int = 3) -> tuple[str, str]:
        plan, code = super().plan_and_code_query(prompt, retries)
        self.trajectory.tell_step("thought", text=plan)
        self.trajectory.tell_step("action", name="run program", text=code)
        return plan, code

    def parse_exec_result(self, node: Node, exec_result: ExecutionResult) -> None:
        self.trajectory.tell_step(
            "output",
            text="".join(exec_result.term_out)[-PREVIEW_CHARACTERS:],
            exit_code=int(exec_result.exc_type is not None),
            seconds=round(exec_result.exec_time, 3),
        )
        super().parse_exec_result(node, exec_result)
        self.trajectory.tell_step("thought", text=f"Review: {node.analysis}")
        if not node.is_buggy:
            self.trajectory.tell_step(
                "validation", metric=None, value=node.metric.value, higher_is_better=node.metric.maximize
            )


class TreeSearch:
    """Takes steps until steps or time run out. The best program's submission is always in place."""

    def __init__(self, task: str, cfg: Any, clock: Clock, trajectory: Trajectory):
        self._cfg, self._clock, self._trajectory = cfg, clock, trajectory
        self._journal = Journal()
        self._agent = TracedAgent(task, cfg, self._journal)
        self._agent.trajectory = trajectory
        self._interpreter = ProgramInterpreter(cfg.workspace_dir, cfg.exec.timeout)
        self._made = Path(cfg.workspace_dir) / "working" / "submission.csv"

    def run(self, steps: int) -> tuple[str, int]:
        """Return why it ended, and the exit code."""
        failures = 0
        while len(self._journal) < steps:
            if self._clock.left() < LEAST_SECONDS:
                return "time", 0
            self._trajectory.step += 1
            try:
                self._agent.step(self._execute)
                aide_config.save_run(self._cfg, self._journal)
                self._submit(self._journal[-1])
                failures = 0
            except ModelGoneError as error:
                return str(error), error.exit_code
            except Exception as error:
                traceback.print_exc()
                failures += 1
                if failures == FAILURES:
                    return f"{failures} steps in a row failed: {error}", 1
        return "steps", 0

    def _execute(self, code: str, reset_session: bool = True) -> ExecutionResult:
        """Run a program, and add a verdict on its submission to its output."""
        self._made.unlink(missing_ok=True)
        self._interpreter.timeout = max(1, int(min(self._cfg.exec.timeout, self._clock.left())))
        began = time.monotonic()
        try:
            result = self._interpreter.run(code, reset_session)
        except Exception as error:  # AIDE crashes when a program brings its interpreter down
            result = lost(time.monotonic() - began, self._interpreter.timeout, error)
        if result.exc_type == "SystemExit" and (result.exc_info or {}).get("args", []) in ([], ["0"], ["None"]):
            result.exc_type = None  # AIDE mistakes sys.exit(0) for a fault
        self._interpreter.end()
        if result.exc_type is None:
            fault = format_fault(self._made) if self._made.is_file() else "There is no ./working/submission.csv."
            if fault:
                result.term_out.append(f"\nThe submission does not count: {fault}\n")
                result.exc_type = "InvalidSubmission"
        return result

    def _submit(self, node: Node) -> None:
        """Put the newest submission in place if it is the best, or better than none."""
        is_best = node is self._journal.get_best_node()
        if not self._made.is_file() or not (is_best or (not SUBMISSION.exists() and not format_fault(self._made))):
            return
        for source, target in ((self._made, SUBMISSION), (None, Path(ENV["CODE_DIR"]) / "solution.py")):
            part = target.with_suffix(".part")  # one rename: a run ended now has the old file or the new one
            if source:
                shutil.copyfile(source, part)
            else:
                part.write_text(node.code, encoding="utf-8")
            part.replace(target)
        self._trajectory.tell_step("submission", path=str(SUBMISSION))


def lost(seconds: float, limit: float, error: Exception) -> ExecutionResult:
    """The outcome of a program whose interpreter died."""
    if seconds > limit:
        return ExecutionResult([f"The program was ended after {duration(limit)}.\n"], seconds, "TimeoutError")
    return ExecutionResult([f"The program ended the interpreter that ran it: {error}\n"], seconds, "Killed")


def preview(workspace: Path) -> str:
    """AIDE's preview of the data. It reads whole tables, as UTF-8; files it cannot read are only listed."""
    files = [Path(folder) / name for folder, _, names in os.walk(workspace, followlinks=True) for name in names]
    tables = sum(path.stat().st_size for path in files if path.suffix in data_preview.plaintext_files)
    try:
        if tables > PREVIEW_BYTES:
            raise ValueError(f"{tables} bytes of tables are too many to read")
        text = data_preview.generate(workspace)
    except Exception as error:
        print(f"no preview of the data: {error}", flush=True)
        text = "\n".join(f"{path.relative_to(workspace)} ({path.stat().st_size} bytes)" for path in sorted(files))
    return text if len(text) <= PREVIEW_CHARACTERS else f"{text[:PREVIEW_CHARACTERS]}\n(cut off here)"


if __name__ == "__main__":
    raise SystemExit(main())
