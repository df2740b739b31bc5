#!/bin/bash
# Runs inside the sandbox, in /home; the agent's folder is $AGENT_DIR. Arguments are the kwargs of config.yaml.
set -e
exec python3 "$AGENT_DIR/agent.py" "$@"
