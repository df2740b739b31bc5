"""The gateway's client: answers in every framing and splitting, connections, certificates, proxies."""

import asyncio
import logging
import shutil
import ssl
import subprocess
import traceback
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.core.errors import PrerequisiteError
from mlebench.gateway.client import Client, IdleTimeoutError
from mlebench.gateway.wire import MalformedResponseError

HEAD = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def listening(serve: Callable[[Reader, Writer], Awaitable[None]], **options: Any) -> AsyncIterator[int]:
    async def one(reader: Reader, writer: Writer) -> None:
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0, **options)
    async with server:
        yield server.sockets[0].getsockname()[1]
    await asyncio.sleep(0.01)  # both ends are closed when the loop comes round


async def request_of(reader: Reader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(int(length.partition(b":")[2]))


async def post(client: Client, url: str) -> tuple[int, bytes]:
    async with client.post(url, b"{}", {"x": "y"}) as answer:
        return answer.status, b"".join([piece async for piece in answer.pieces])


def answered(*parts: bytes, times: int = 1, idle: float = 100) -> list[tuple[int, bytes]]:
    """What the client makes of these bytes, each of which arrives separately."""

    async def serve(reader: Reader, writer: Writer) -> None:
        await request_of(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        if idle < 1:
            await reader.read()  # until the client has given up

    async def ask() -> list[tuple[int, bytes]]:
        async with listening(serve) as port:
            client = Client(f"http://127.0.0.1:{port}", 100, idle)
            try:
                return [await post(client, f"http://127.0.0.1:{port}/v1/x") for _ in range(times)]
            finally:
                await client.close()

    return asyncio.run(ask())


def chunked(pieces: list[bytes]) -> bytes:
    return b"".join(f"{len(piece):X};x=y\r\n".encode() + piece + b"\r\n" for piece in pieces if piece) + b"0\r\n"


@given(
    st.lists(st.binary(max_size=40), max_size=6),
    st.sampled_from(["chunked", "with trailers", "counted", "closed"]),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_any_body_in_any_framing_and_splitting(pieces: list[bytes], framing: str, cuts: list[int]) -> None:
    body = b"".join(pieces)
    data = {
        "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(pieces) + b"\r\n",
        "with trailers": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(pieces) + b"a: b\r\nc: d\r\n\r\n",
        "counted": HEAD + f"content-length: {len(body)}\r\n\r\n".encode() + body,
        "closed": b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"\r\n" + body,
    }[framing]
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = [data[start:end] for start, end in pairwise(places)]
    assert answered(*parts) == [(200, body)]


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        HEAD + b"content-length: -1\r\n\r\n",
        HEAD + b"content-length : 1\r\n\r\nx",
        HEAD + b"content-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
        HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"x: " + b"y" * 200_000,
    ],
)
def test_anything_but_http_is_garbage(data: bytes) -> None:
    with pytest.raises(MalformedResponseError):
        answered(data)


@pytest.mark.parametrize(
    "data", [b"", HEAD, HEAD + b"content-length: 9\r\n\r\nx", HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\nab"]
)
def test_a_truncated_answer_does_not_count(data: bytes) -> None:
    with pytest.raises(ConnectionError):
        answered(data)
    with pytest.raises(IdleTimeoutError):
        answered(data, idle=0.2)


@pytest.mark.parametrize("value", ["Bearer SECRET", "Bearer SECRET\n"])
@pytest.mark.parametrize("data", [b"", b"hello\r\n\r\n", HEAD + b"content-length: 9\r\n\r\nx"])
def test_a_key_is_in_no_exception_and_no_log(value: str, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        await request_of(reader)
        writer.write(data)
        await writer.drain()

    async def ask() -> None:
        async with listening(serve) as port:
            client = Client(f"http://127.0.0.1:{port}", 100, 100)
            try:
                async with client.post(f"http://127.0.0.1:{port}/x", b"{}", {"authorization": value}) as answer:
                    _ = [piece async for piece in answer.pieces]
            finally:
                assert "SECRET" not in repr(vars(client))
                await client.close()

    with caplog.at_level(logging.DEBUG), pytest.raises((ConnectionError, MalformedResponseError)) as failure:
        asyncio.run(ask())
    assert caplog.records
    assert "SECRET" not in "".join(traceback.format_exception(failure.value)) + caplog.text


def test_connections_are_reused_while_open() -> None:
    opened = 0

    async def serve(reader: Reader, writer: Writer) -> None:
        nonlocal opened
        opened += 1
        for _ in range(2):  # and then it is closed
            await request_of(reader)
            writer.write(HEAD + b"content-length: 2\r\n\r\nok")

    async def ask() -> None:
        async with listening(serve) as port:
            client = Client(f"http://127.0.0.1:{port}", 5, 5)
            for _ in range(4):
                assert await post(client, f"http://127.0.0.1:{port}/x") == (200, b"ok")
                await asyncio.sleep(0.05)
            await client.close()

    asyncio.run(ask())
    assert opened == 2


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for model.invalid that nobody trusts unless told to."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    file = tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=model.invalid"]
        + ["-addext", "subjectAltName=DNS:model.invalid", "-keyout", str(file), "-out", str(tmp_path / "c.pem")],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + (tmp_path / "c.pem").read_text())
    return file


@pytest.mark.parametrize("trusted", [True, False])
def test_through_a_proxy_to_a_host_whose_certificate_is_checked(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    asked: list[bytes] = []

    async def model(reader: Reader, writer: Writer) -> None:
        asked.append(await request_of(reader))
        writer.write(HEAD + b"content-length: 2\r\n\r\nok")
        await writer.drain()

    async def ask() -> tuple[int, bytes]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        async with listening(model, ssl=context) as port:

            async def proxy(reader: Reader, writer: Writer) -> None:
                asked.append(await reader.readuntil(b"\r\n\r\n"))
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"HTTP/1.1 200 go on\r\n\r\n")
                try:
                    await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))
                finally:
                    far_writer.close()

            async with listening(proxy) as proxy_port:
                monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%40ss@127.0.0.1:{proxy_port}")
                client = Client("https://model.invalid/v1", 5, 5)
                try:
                    return await post(client, "https://model.invalid/v1/x")
                finally:
                    await client.close()

    if not trusted:
        with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            asyncio.run(ask())
        assert len(asked) == 1, "the model is not told anything"
        return
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert asyncio.run(ask()) == (200, b"ok")
    assert asked[0].startswith(b"CONNECT model.invalid:443 HTTP/1.1\r\n")
    assert b"proxy-authorization: basic bwu6cebzcw==" in asked[0].lower()
    assert asked[1].lower().startswith(b"post /v1/x http/1.1\r\nhost: model.invalid\r\n")
    assert b"proxy-authorization" not in asked[1].lower()


async def carry(reader: Reader, writer: Writer) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


def test_a_plain_address_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    async def proxy(reader: Reader, writer: Writer) -> None:
        asked.append(await request_of(reader))
        writer.write(HEAD + b"content-length: 2\r\n\r\nok")
        await writer.drain()

    async def ask() -> tuple[int, bytes]:
        async with listening(proxy) as port:
            monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{port}")
            client = Client("http://model.invalid/v1", 5, 5)
            try:
                return await post(client, "http://model.invalid/v1/x")
            finally:
                await client.close()

    assert asyncio.run(ask()) == (200, b"ok")
    assert asked[0].startswith(b"POST http://model.invalid/v1/x HTTP/1.1\r\n")


def test_a_proxy_that_is_not_one_of_http_is_refused_unless_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:secret@127.0.0.1:1")
    Client("http://127.0.0.1:1/v1", 5, 5)
    with pytest.raises(PrerequisiteError, match="only those are supported") as failure:
        Client("https://model.invalid/v1", 5, 5)
    assert "secret" not in str(failure.value)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    Client("https://model.invalid/v1", 5, 5)
