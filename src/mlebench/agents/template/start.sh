#!/bin/bash
# Runs inside the sandbox, in the agent's folder. Arguments are the kwargs of config.yaml.
set -e
exec python3 "$AGENT_DIR/agent.py" "$@"
