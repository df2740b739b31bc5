#!/bin/sh
# Shows:  how much of a result is the model, and how much the program around it. One model works under two scaffolds of
#         the agent in solver/: `one-shot` runs its program as it is, `repair` shows it the error and lets it try again.
# Run:    sh examples/compare_scaffolds.sh [OPTIONS OF mlebench run]
# Prints: standings of both, and the difference between them. The model is scripted, so `one-shot` always submits nothing
#         and `repair` always earns a score. For a real one: --model NAME --budget 5usd, and no --endpoint.
set -eu
here=$(dirname "$0")
runs=runs-scaffolds

rm -f endpoint.txt
mlebench dev scripted-model "$here/scripted_model/model.yaml" > endpoint.txt &
trap 'kill $!' EXIT
until [ -s endpoint.txt ]; do kill -0 $!; sleep 0.1; done

for scaffold in repair one-shot; do
    mlebench run --agent "$here/solver#$scaffold" -c spaceship-titanic --twin --runs-dir "$runs" \
        --network model --model scripted --endpoint "$(cat endpoint.txt)" --time-limit 5m "$@"
done
mlebench report "$runs"/*
