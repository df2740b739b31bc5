import csv
import os
from collections import Counter
from pathlib import Path


def read(name):
    with Path(os.environ["DATA_DIR"], name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


votes = Counter()
for row in read("train.csv"):
    votes[row[column]] += 1 if row["Transported"] == "True" else -1
with Path(os.environ["SUBMISSION_DIR"], "submission.csv").open("w", encoding="utf-8") as file:
    print("PassengerId,Transported", file=file)
    for row in read("test.csv"):
        print(f"{row['PassengerId']},{votes[row[column]] > 0}", file=file)
