"""Submits the sample, then the best it can learn from the files. Uses no language model; runs in a sandbox.

If it cannot understand the task, or something fails, the last submission stays.
"""

import argparse
import os
import traceback
from pathlib import Path

import features
import media
import metric
import numpy as np
import pandas as pd
import predictions
import tables
import text_tasks
from contest import KEPT_BACK, Contest
from files import Files
from outside import Clock, Submission, Trajectory
from task import PredictionTask, UnclearError, understand

MOST_ROWS = 150_000  # for models to learn from
TIME_FOR_FILES = 0.5


class BaselineAgent:
    def __init__(self, data: Path, sample: Path, submission: Path, logs: Path, seconds: float, trials: int, seed: int):
        self._data, self._sample, self._seed, self._trials = data, sample, seed, trials
        self._clock = Clock(seconds, float(os.environ.get("TIME_LIMIT_SECS", "inf")))
        self._trajectory = Trajectory(logs)
        self._submission = Submission(submission, self._trajectory)

    def run(self) -> None:
        self._trajectory.start("baseline-search" if self._trials else "baseline")
        try:
            self._work()
            self._trajectory.end("finished")
        except UnclearError as error:
            self._trajectory.end(f"keeps what it has submitted: {error}")
        except Exception as error:  # the files may be anything; an earlier submission stays
            traceback.print_exc()
            self._trajectory.end(f"keeps what it has submitted: {type(error).__name__}: {error}")

    def _work(self) -> None:
        content = self._sample.read_bytes()
        self._submission.begin(content)
        self._trajectory.thought(f"{self._sample.name} is submitted as it is; now for something better.")
        description = (self._data / "description.md").read_text(encoding="utf-8", errors="replace")
        files = Files(self._data)
        wanted = metric.from_description(description)
        data_tables = tables.find(self._data, self._sample.name)
        task = understand(tables.read_sample(content), data_tables, files, description, wanted)
        self._trajectory.thought(task.describe())
        if self._fill_texts(task):
            return
        answer_format = predictions.answer_format(task)
        self._trajectory.thought(f"The models learn {answer_format.width} {answer_format.kind}.")
        train, test, rows = self._features(task, files)
        contest = Contest(
            answer_format.learned_from(rows),
            task.belongs_to[rows],
            train,
            test,
            metric.used_for(answer_format.kind, wanted),
            self._seed,
            lambda predicted: self._submission.hand_in(predictions.filled(task, answer_format, predicted)),
            self._trajectory,
        )
        contest.run(self._trials, self._clock)

    def _features(self, task: PredictionTask, files: Files) -> tuple[features.Features, features.Features, np.ndarray]:
        """Features of training rows (at most MOST_ROWS, and only those whose files were read) and of test rows."""
        random = np.random.default_rng(self._seed)
        rows = np.sort(random.permutation(len(task.train))[:MOST_ROWS])
        more = None
        if any(task.test_files):
            tests = media.features(task.test_files, files, self._clock.part(TIME_FOR_FILES / 2))
            trains = media.features([task.train_files[row] for row in rows], files, self._clock.part(TIME_FOR_FILES))
            width = min(tests.shape[1], trains.shape[1])
            read = ~np.isnan(trains[:, :width]).all(1)
            if read.any() and not task.inputs:
                rows, trains = rows[read], trains[read]
            more = np.vstack([trains[:, :width], tests[:, :width]])
            self._trajectory.thought(f"{width} numbers of each file; {int(read.sum())} training rows have them.")
        columns = task.inputs
        train = task.train[columns].iloc[rows].reset_index(drop=True)
        return *features.of_rows(train, task.test[columns], more, self._seed), rows

    def _fill_texts(self, task: PredictionTask) -> bool:
        """Fill cells by copying another column or looking up its value, if that is often right."""
        if len(task.targets) > 1 or task.is_by_class:
            return False
        truth = [str(cell) for cell in task.truth[task.targets[0]]]
        if len(set(truth)) < 0.02 * len(truth) + 5 or pd.to_numeric(pd.Series(truth), errors="coerce").notna().all():
            return False
        back = np.random.default_rng(self._seed).random(len(truth)) < KEPT_BACK
        guessers = text_tasks.ways(
            task, task.train[~back], [text for text, is_back in zip(truth, back, strict=True) if not is_back]
        )
        back_texts = [text for text, is_back in zip(truth, back, strict=True) if is_back]
        by_words = task.metric.name == "jaccard"
        values = {
            name: text_tasks.likeness(back_texts, guess(task.train[back]), by_words) for name, guess in guessers.items()
        }
        best = max(values, key=lambda name: values[name], default=None)
        if best is None or values[best] < 0.2:
            return False
        self._trajectory.thought(f"Fill {task.targets[0]}: {best}.")
        self._trajectory.validation("jaccard" if by_words else "accuracy", values[best], True)
        guesses = text_tasks.ways(task, task.train, truth)[best](task.test)
        cells = pd.Series(guesses).groupby(task.group).first().reindex(np.arange(task.rows.max() + 1))
        sample_cells = task.sample[task.targets[0]].to_numpy()
        cell_values = cells.to_numpy()[task.rows]
        filled = np.where(pd.isna(cell_values), sample_cells, cell_values)
        return self._submission.hand_in(predictions.written(task.sample, {task.targets[0]: filled}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--trials", type=int, default=0)
    options = parser.parse_args()
    data, submission, logs = (Path(os.environ[f"{name}_DIR"]) for name in ("DATA", "SUBMISSION", "LOGS"))
    sample = Path(os.environ["SAMPLE_SUBMISSION"])
    seed = int(os.environ.get("SEED", "0"))
    BaselineAgent(data, sample, submission, logs, options.seconds, options.trials, seed).run()


if __name__ == "__main__":
    main()
