"""Requests of ours to other machines: the proxy that they go through, and why one failed."""

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mlebench.core.errors import PrerequisiteError

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def cause_of(error: BaseException) -> str:
    """What the system said: above it, a refused connection is one of "all attempts" that failed."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return str(error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error)


def proxy_for(endpoint: str) -> str | None:
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise PrerequisiteError(f"the proxy for {endpoint} is not one of HTTP: only those are supported")
    return proxy or None
