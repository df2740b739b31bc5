#!/bin/bash
exec python3 "$AGENT_DIR/main.py" "$@"
