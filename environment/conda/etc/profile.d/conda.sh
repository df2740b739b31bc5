# To be sourced: makes `conda activate` work in this shell. See /opt/conda/bin/conda.
eval "$(/opt/conda/bin/conda shell.bash hook)"
