#!/bin/sh
# Shows:  whether an agent does worse when it is not told which competition it is in. The same agent runs with the usual
#         description and with the obfuscated one, which does not name the original.
# Run:    sh examples/obfuscated.sh [OPTIONS OF mlebench run]
# Prints: what the agent saw in each case (the id and the title), then standings with an entry for each.
set -eu
runs=runs-obfuscated

run() {
    mlebench run --agent command -c spaceship-titanic --twin --runs-dir "$runs" --time-limit 1m --agent-command '
        echo "$COMPETITION_ID: $(head -n 1 "$DATA_DIR/description.md")"
        cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"
    ' "$@"
}
run "$@"
run --obfuscate "$@"
cat "$runs"/*/*/run.log
mlebench report "$runs"/*
