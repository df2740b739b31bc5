#!/bin/sh
# Shows:  a competition of your own, in a folder outside the package: competitions/seed-germination/. It has everything a
#         competition needs: facts, text, prepare, grade, a twin and a leaderboard. docs/guides/own-competition.md explains
#         each file; `mlebench new-competition FOLDER` writes such a folder to start from.
# Run:    sh examples/own_competition.sh [OPTIONS OF mlebench run]
# Prints: what is known about the competition, whether it satisfies the contract, and the score and medal of an agent that
#         ranks seeds by how far their temperature is from 22 degrees.
set -eu
export MLEBENCH_COMPETITION_PATH="$(cd "$(dirname "$0")" && pwd)/competitions"

mlebench show seed-germination
mlebench test-competition seed-germination
mlebench prepare -c seed-germination --twin
mlebench run -c seed-germination --twin --runs-dir runs-own --time-limit 1m --agent command --agent-command '
    cd "$SUBMISSION_DIR"
    echo seed_id,germinated > submission.csv
    tail -n +2 "$DATA_DIR/test.csv" | awk -F, -v OFS=, "{ print \$1, -(\$2 - 22) ^ 2 }" >> submission.csv
' "$@"
