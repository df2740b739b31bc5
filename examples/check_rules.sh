#!/bin/sh
# Shows:  whether the runs of a group kept to the rules. One of the two agents here hard-codes its predictions; the other
#         looks honest, and is.
# Run:    sh examples/check_rules.sh [OPTIONS OF mlebench run]
#         For a group of your own, all you need is: mlebench inspect rules GROUP
# Prints: findings with quotes. `written-by-hand` is a violation; conditions and notes are for whoever reads the score.
set -eu
runs=runs-rules

run() {
    mlebench run --agent command -c spaceship-titanic --twin --runs-dir "$runs" --time-limit 1m --agent-command "$@"
}
run 'cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"' "$@"
run '
    echo PassengerId,Transported > table.txt
    tail -n +2 "$DATA_DIR/sample_submission.csv" | sed "s/False/True/" >> table.txt
    { echo "predictions = \"\"\""; cat table.txt; echo "\"\"\""; } > "$CODE_DIR/predict.py"
    cp table.txt "$SUBMISSION_DIR/submission.csv"
' "$@"
for group in "$runs"/*; do
    mlebench inspect rules "$group"
done
