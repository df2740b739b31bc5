"""GET requests to an index, over httpx2's transport.

A transport, and not a client: it stores no cookie, reads no `.netrc` and logs no address.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urljoin, urlsplit

import httpx2

from mlebench.core.outbound import cause_of, proxy_for
from mlebench.packages.refusals import index_failed, limit_reached, not_found

CONNECT, IDLE = 20.0, 60.0  # seconds
AT_ONCE = 8  # requests
MOST_REQUESTS = 20_000  # of a run
MOST_REDIRECTS = 3
REDIRECTS = (301, 302, 303, 307, 308)


class IndexClient:
    """Raises RefusedError for whatever goes wrong."""

    def __init__(self) -> None:
        self._certificates = ssl.create_default_context()  # the system's, or those that SSL_CERT_FILE names
        self._transports: dict[str | None, httpx2.AsyncHTTPTransport] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._requests = 0

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    @asynccontextmanager
    async def get(self, url: str, accept: str, seconds: float) -> AsyncIterator[tuple[str, httpx2.Response]]:
        """The answer at an address, and the address after redirects, which stay on its host."""
        async with self._turns:
            try:
                with _own_errors():
                    async with asyncio.timeout(seconds), self._redirected(url, accept) as answer:
                        yield answer
            except TimeoutError:
                raise index_failed(f"gave no complete answer within {seconds:.0f} s") from None

    @asynccontextmanager
    async def _redirected(self, url: str, accept: str) -> AsyncIterator[tuple[str, httpx2.Response]]:
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._send(url, accept)
            try:
                if response.status_code not in REDIRECTS:
                    _require_usable(response)
                    yield url, response
                    return
                target = response.headers.get("location", "")
            finally:
                await response.aclose()
            url = _redirect(url, target)
        raise index_failed(f"redirects more than {MOST_REDIRECTS} times")

    async def _send(self, url: str, accept: str) -> httpx2.Response:
        self._requests += 1
        if self._requests > MOST_REQUESTS:
            raise limit_reached(f"this run has made {MOST_REQUESTS} requests to the index, and may make no more")
        timeout = httpx2.Timeout(IDLE, connect=CONNECT, pool=None)
        headers = {"accept": accept, "accept-encoding": "identity", "user-agent": "mlebench"}
        request = httpx2.Request("GET", url, headers=headers, extensions={"timeout": timeout.as_dict()})
        return await self._transport(url).handle_async_request(request)

    def _transport(self, url: str) -> httpx2.AsyncHTTPTransport:
        proxy = proxy_for(url)
        if proxy not in self._transports:
            self._transports[proxy] = httpx2.AsyncHTTPTransport(self._certificates, proxy=proxy)
        return self._transports[proxy]


def _redirect(url: str, target: str) -> str:
    """Where a redirect leads, which must be on the same host."""
    try:
        address = urljoin(url, target)
        is_same = _origin(address) == _origin(url)
    except ValueError:
        raise index_failed("redirects to what is no address") from None
    if not is_same or "@" in urlsplit(address).netloc:
        raise index_failed("redirects to another host")
    return address


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _require_usable(response: httpx2.Response) -> None:
    if response.status_code in (404, 410):
        raise not_found("the index has no such project or file")
    if response.status_code != 200:
        raise index_failed(f"answers {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise index_failed("answers in an encoding that was not asked for")


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except httpx2.ConnectTimeout:
        raise index_failed(f"does not answer within {CONNECT:g} s") from None
    except httpx2.TimeoutException:
        raise index_failed("fell silent") from None
    except httpx2.ProtocolError:
        raise index_failed("breaks off, or does not speak HTTP") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise index_failed(f"cannot be reached: {cause_of(error)[:200]}") from None
