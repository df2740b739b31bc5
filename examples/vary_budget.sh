#!/bin/sh
# Shows:  how a score depends on the compute an agent may use. The same agent runs with less and more time, and with
#         more CPUs.
# Run:    sh examples/vary_budget.sh [AGENT [OPTIONS OF mlebench run]]
#         AGENT is baseline#baseline-search by default: `mlebench agents install baseline`. On machines with GPUs,
#         vary `--gpus none` and `--gpus 0` in the same way.
# Prints: standings with an entry for each budget, and columns that say what it had.
set -eu
agent=${1:-baseline#baseline-search}
[ $# -eq 0 ] || shift
runs=runs-budget

while read -r time cpus; do
    mlebench run --agent "$agent" -c spaceship-titanic --twin --runs-dir "$runs" \
        --time-limit "$time" --cpus "$cpus" "$@" < /dev/null
done << BUDGETS
30s 1
2m  1
2m  2
BUDGETS
mlebench report "$runs"/*
