"""Did an agent follow the rules? Detectors decide what can be decided, and a judge may add to that.

`inspection` puts them together. `judge` asks the questions in `rubric`; `calibration` measures how far to trust it.
"""
