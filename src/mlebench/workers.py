"""The fork server for worker processes, with every library they need.

A fork of a process with threads may hang, and a spawned process would import everything again. The server may be
started before it is known to be needed: it imports while its parent is still parsing arguments.
"""

from multiprocessing import forkserver


def start_server(preload: str) -> None:
    """Start the fork server unless it is running; `preload` is the module that it imports for its workers."""
    forkserver.set_forkserver_preload([preload])
    forkserver.ensure_running()
