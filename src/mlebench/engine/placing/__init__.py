"""What goes into a folder is planned first; then all of it is written and placed."""
