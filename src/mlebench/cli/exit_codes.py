"""Exit codes. docs/reference/exit-codes.md explains them to users."""

DONE = 0
FAILED = 1  # something could not be done
USAGE = 2  # the request cannot be understood, or names something that does not exist
INTERRUPTED = 130  # Ctrl-C
