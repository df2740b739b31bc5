"""Worker processes: the fork server, with every library they need, and the threads of numeric libraries.

A fork of a process with threads may hang, and a spawned process would import everything again. The server may be
started before it is known to be needed: it imports while its parent is still parsing arguments.
"""

import os
from multiprocessing import forkserver

THREADS = "OMP_NUM_THREADS"  # read by most libraries that have no variable of their own
# By default each of these starts a thread for every CPU when it is loaded, and some of them wait by spinning.
_THREAD_VARIABLES = (
    THREADS,
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def start_server(preload: str) -> None:
    """Start the fork server unless it is running; `preload` is the module that it imports for its workers."""
    forkserver.set_forkserver_preload([preload])
    forkserver.ensure_running()


def thread_variables() -> dict[str, str]:
    """For the environment of a process of ours that computes in one thread; what the user has set is left as it is."""
    general = os.environ.get(THREADS, "1")
    return {name: os.environ.get(name, general) for name in _THREAD_VARIABLES}
