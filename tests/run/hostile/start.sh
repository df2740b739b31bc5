exec python3 "$AGENT_DIR/agent.py" "$@"
