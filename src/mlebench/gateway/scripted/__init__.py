"""An endpoint on this machine that answers as a model would, from a script: agents can be tried without paying."""
