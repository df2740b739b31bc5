"""What the fork server imports for its workers: a process that just waits does not need it."""

import gc
import os
import signal
from importlib import import_module

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here needs numpy's threads, which busy-wait

# Modules live forever. Not collecting garbage among them makes imports, and all later work, faster.
gc.disable()
for _name in ("mlebench.data.kaggle", "mlebench.data.pipeline", "mlebench.kit"):
    import_module(_name)
gc.freeze()
gc.set_threshold(100_000, 20, 20)  # tables and records hold few cycles
gc.enable()
