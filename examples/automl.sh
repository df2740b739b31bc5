#!/bin/sh
# Shows:  what AutoML adds to plain models. `baseline` tries a few kinds of models with fixed settings. Its variant
#         `baseline-search` is AutoML: it tries random settings while there is time, keeps what does best on held-out
#         rows, and blends the best.
# Run:    mlebench agents install baseline       # once; `make demo` does it too
#         sh examples/automl.sh [OPTIONS OF mlebench run]
# Prints: standings of the two, and for each run what it tried: model, settings and score on the held-out rows.
# To use a library of your own, copy the folder that `mlebench agents show baseline` names, add the library to its
# requirements.txt, and add a model that calls it to `_FIT` in models.py.
set -eu
runs=runs-automl

for agent in baseline#baseline-search baseline; do
    mlebench run --agent "$agent" -c spaceship-titanic --twin --runs-dir "$runs" --time-limit 3m "$@"
done
mlebench report "$runs"/*
for run in "$runs"/*/spaceship-titanic_*; do
    mlebench runs show "$run" --story
done
