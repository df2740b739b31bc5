#!/bin/bash
# Nothing is fetched and nothing is reported: prices and encodings come with the packages.
export LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_TELEMETRY=False LITELLM_LOG=ERROR
export OPENHANDS_SUPPRESS_BANNER=1 DO_NOT_TRACK=1 OTEL_SDK_DISABLED=true
export INPUTRC="$AGENT_DIR/inputrc"
exec python3 "$AGENT_DIR/main.py" "$@"
