#!/bin/sh
# Shows:  what an agent gains from material it may read. The same agent runs twice: with nothing, and with the folder
#         notes/ at /home/knowledge.
# Run:    sh examples/retrieval.sh [OPTIONS OF mlebench run]
# Prints: standings with a separate entry for each, with its percentile and, in a column, what it could
#         read. The model is scripted; with the notes it finds the better program.
set -eu
here=$(dirname "$0")
runs=runs-retrieval

rm -f endpoint.txt
mlebench dev scripted-model "$here/scripted_model/model.yaml" > endpoint.txt &
trap 'kill $!' EXIT
until [ -s endpoint.txt ]; do kill -0 $!; sleep 0.1; done

run() {
    mlebench run --agent "$here/solver#repair" -c spaceship-titanic --twin --runs-dir "$runs" \
        --network model --model scripted --endpoint "$(cat endpoint.txt)" --time-limit 5m "$@"
}
run "$@"
run --knowledge "$here/notes" "$@"
mlebench report "$runs"/*
