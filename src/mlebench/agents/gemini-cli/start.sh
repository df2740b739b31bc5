#!/bin/bash
# Arguments are the kwargs of config.yaml.
exec python3 "$AGENT_DIR/gemini_cli.py" "$@"
