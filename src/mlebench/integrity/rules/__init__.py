"""Did an agent keep to the rules? Detectors decide what can be decided, and a judge may add to them.

`inspection` puts them together. `judge` asks the questions of `rubric`; `calibration` tells how far to trust it.
"""
