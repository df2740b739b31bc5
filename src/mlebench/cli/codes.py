"""How commands end. docs/exit-codes.md tells it to users."""

DONE = 0
FAILED = 1  # something could not be done
USAGE = 2  # what was asked for cannot be understood, or does not exist
INTERRUPTED = 130  # Ctrl-C
