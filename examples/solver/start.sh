exec python3 "$AGENT_DIR/solver.py" "$@"
