"""Shows:  mlebench as an environment: `reset` returns a task, `step` a reward from the grader. Each episode has its own
        twin, so that the policy learns what to do. (On real data it would learn the answers.)
Run:    python examples/rl_loop.py
Prints: for each column, how often a bandit chose to predict from it, and the mean reward.
"""

import random
from collections import Counter
from pathlib import Path

import pandas as pd

from mlebench.data import TwinSource, prepare
from mlebench.grade import grade_csv
from mlebench.registry import Registry


class Environment:
    def reset(self, seed: int) -> Path:
        self.competition = Registry(f"runs-rl/{seed}").get_competition("spaceship-titanic")
        prepare(self.competition, TwinSource(seed))
        return self.competition.public_dir  # all that an agent may see

    def step(self, submission: pd.DataFrame) -> float:
        submission.to_csv(path := Path("runs-rl/submission.csv"), index=False)
        return grade_csv(path, self.competition).score or 0.0  # None: it is invalid


environment, chance, times = Environment(), random.Random(0), Counter[str]()
value = {"VIP": 1.0, "HomePlanet": 1.0, "CryoSleep": 1.0}  # hopes: each is tried at least once
for episode in range(30):
    public = environment.reset(seed=episode)
    column = chance.choice(list(value)) if chance.random() < 0.1 else max(value, key=value.__getitem__)
    train, test = pd.read_csv(public / "train.csv"), pd.read_csv(public / "test.csv")
    guess = test[column].isin([key for key, rows in train.groupby(column) if sum(rows["Transported"]) > len(rows) / 2])
    reward = environment.step(test[["PassengerId"]].assign(Transported=guess))
    times[column] += 1
    value[column] += (reward - value[column]) / times[column]
print(*(f"{column}: {times[column]} times, mean reward {value[column]:.3f}" for column in value), sep="\n")
