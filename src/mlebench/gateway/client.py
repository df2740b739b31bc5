"""POST requests to a model's endpoint, over httpx2's transport, whose answers arrive piece by piece.

A transport, and not a client: it follows no redirect, stores no cookie, reads no `.netrc` and logs no address.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from mlebench.core.outbound import cause_of, proxy_for
from mlebench.gateway.wire import MalformedResponseError

LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60)
# A broken connection and bytes that are not HTTP raise the same error; only the first is worth another try.
_BROKEN_OFF = ("Server disconnected", "peer closed", "peer unexpectedly closed")


class IdleTimeoutError(Exception):
    """Nothing arrived for too long, though the connection is open."""


@dataclass
class EndpointResponse:
    status: int
    headers: httpx2.Headers
    pieces: AsyncIterator[bytes]


class Client:
    """Raises ConnectionError, IdleTimeoutError and MalformedResponseError, none of which holds a request header."""

    def __init__(self, endpoint: str, connect: float, idle: float):
        self._connect, self._idle = connect, idle
        certificates = ssl.create_default_context()  # the system's, or those that SSL_CERT_FILE and SSL_CERT_DIR name
        self._transport = httpx2.AsyncHTTPTransport(certificates, proxy=proxy_for(endpoint), limits=LIMITS)

    async def close(self) -> None:
        await self._transport.aclose()

    @asynccontextmanager
    async def post(
        self, url: str, content: bytes, headers: dict[str, str], sent: Callable[[], None] = lambda: None
    ) -> AsyncIterator[EndpointResponse]:
        """Send a request; `sent` is called as soon as the endpoint may have all of it.

        The connection is reused if the answer was read to its end.
        """

        async def trace(event: str, _: dict[str, Any]) -> None:
            if event == "http11.send_request_body.started":  # once it is complete, the task may have been cancelled
                sent()

        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise MalformedResponseError(
                "the request has a header that cannot be sent"
            )  # httpx2 would log and quote it
        timeout = httpx2.Timeout(self._idle, connect=self._connect, pool=None)
        extensions = {"timeout": timeout.as_dict(), "trace": trace}
        request = httpx2.Request("POST", url, content=content, headers=headers, extensions=extensions)
        with self._own_errors():
            response = await self._transport.handle_async_request(request)
            try:
                if response.headers.get("content-encoding", "identity").lower() != "identity":
                    raise MalformedResponseError("its answer is in an encoding that was not asked for")
                yield EndpointResponse(response.status_code, response.headers, response.aiter_raw())
            finally:
                await response.aclose()

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except httpx2.ConnectTimeout:
            raise ConnectionError(f"it does not answer within {self._connect:g} s") from None
        except httpx2.TimeoutException:
            raise IdleTimeoutError from None
        except httpx2.ProtocolError as error:
            if str(error).startswith(_BROKEN_OFF):
                raise ConnectionError("the endpoint closed the connection") from None
            raise MalformedResponseError(f"it does not speak HTTP: {str(error)[:200]}") from None
        except httpx2.ProxyError as error:
            raise ConnectionError(f"the proxy answers {error}") from None
        except httpx2.TransportError as error:
            raise ConnectionError(cause_of(error)) from None
