"""Bytes that are no request: the connection is closed, and nobody else notices."""

import struct
from typing import NamedTuple

import pytest

from tests.e2e import raw_answers, raw_requests
from tests.e2e.raw_wire import Connection, Frame, Reader, answer_reader, with_length
from tests.e2e.subjects import KAFKA, OURS, Subject

NONE = 0
UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42

FRAME_BYTES_MAX = 100 * 1024 * 1024
CLIENT = b"\x00\x03raw"


def header(api_key: int, api_version: int, client: bytes = CLIENT) -> bytes:
    return struct.pack(">hhi", api_key, api_version, 7) + client


class Case(NamedTuple):
    """What is sent, what our broker says of it, and whether Kafka is as strict.

    Where it is not, it takes what it understands and answers that.
    """

    name: str
    data: bytes
    story: bytes
    is_closed_by_kafka: bool = True


NOT_FRAMES = [
    Case("length-minus-1", b"\xff\xff\xff\xff", b"frame length -1"),
    Case("length-smallest", b"\x80\x00\x00\x00", b"frame length -2147483648"),
    Case("length-above-max", struct.pack(">i", FRAME_BYTES_MAX + 1), b"frame length 104857601"),
    Case("length-greatest", b"\x7f\xff\xff\xff", b"frame length 2147483647"),
    Case("http-get", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP request"),
    Case("http-post", b"POST /topics HTTP/1.1\r\n\r\n", b"HTTP request"),
    Case("tls-hello", bytes.fromhex("1603010200010001fc0303") + bytes(64), b"TLS handshake"),
]

NOT_REQUESTS = [
    Case("empty", with_length(b""), b"request header"),
    Case("one-byte", with_length(b"\x00"), b"request header"),
    Case("half-a-header", with_length(bytes(7)), b"request header"),
    Case("no-client-id", with_length(header(18, 0, b"")), b"string"),
    Case("client-id-beyond-the-end", with_length(header(3, 1, b"\x7f\xff")), b"string"),
    Case("api-unknown", with_length(header(999, 0)), b"api key 999"),
    Case("api-negative", with_length(header(-1, 0)), b"api key -1"),
    Case("api-of-kraft", with_length(header(52, 0) + bytes(20)), b"api key 52"),
    Case("version-above", with_length(header(0, 12) + bytes(20)), b"version 12"),
    Case("version-negative", with_length(header(0, -1) + bytes(20)), b"version -1"),
    Case("version-greatest", with_length(header(3, 32767) + bytes(20)), b"version 32767"),
]

MALFORMED = [
    Case("body-missing", with_length(header(3, 1)), b"bytes are left"),
    Case("count-above", with_length(header(3, 1) + b"\x7f\xff\xff\xff"), b"elements"),
    Case("count-null-in-version-0", with_length(header(3, 0) + b"\xff\xff\xff\xff"), b"null"),
    Case(
        "name-null",
        with_length(header(3, 1) + b"\x00\x00\x00\x01\xff\xff"),
        b"null",
    ),
    Case(
        "varint-too-long",
        with_length(header(3, 9) + b"\x00" + b"\xff" * 6 + bytes(5)),
        b"varint",
    ),
    Case(
        "compact-count-above",
        with_length(header(3, 9) + b"\x00" + b"\xff\xff\xff\xff\x07" + bytes(5)),
        b"elements",
    ),
    Case(
        "compact-count-of-32-bits",
        with_length(header(3, 9) + b"\x00" + b"\xff\xff\xff\xff\x0f" + bytes(5)),
        b"elements",
        is_closed_by_kafka=False,
    ),
    Case("tags-above", with_length(header(18, 3) + b"\xff\xff\xff\xff\x0f"), b"tagged"),
    Case("tag-size-above", with_length(header(18, 3) + b"\x01\x50\xff\xff\xff\x7f"), b"tagged"),
    Case(
        "records-beyond-the-end",
        with_length(
            header(0, 3)
            + bytes.fromhex("ffff 0001 000003e8 00000001 0001 74 00000001 00000000 7fffffff")
        ),
        b"bytes are left",
    ),
    Case(
        "name-not-utf-8",
        with_length(header(3, 1) + b"\x00\x00\x00\x01\x00\x02\xff\xfe"),
        b"not UTF-8",
        is_closed_by_kafka=False,
    ),
]

CASES = [*NOT_FRAMES, *NOT_REQUESTS, *MALFORMED]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_no_request_closes_its_connection(subject: Subject, case: Case) -> None:
    with subject.connect() as connection, subject.connect() as bystander:
        said = subject.said()
        connection.send_bytes(case.data)
        if subject.name == KAFKA and not case.is_closed_by_kafka:
            assert connection.receive() is not None
        else:
            assert connection.is_closed_by_broker()
        if subject.name == OURS:
            assert case.story in subject.said()[len(said) :]
        subject.check_good_requests(bystander)
    subject.check_good_requests()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_came_before_is_answered_first(subject: Subject, case: Case) -> None:
    """One send: a good request and then something else."""
    good = raw_requests.api_versions(0)
    with subject.connect() as connection:
        connection.send_bytes(with_length(good.data) + case.data)
        answer = connection.receive_answer(good)
        assert raw_answers.versions(answer, 0).error_code == NONE
        if subject.name == OURS or case.is_closed_by_kafka:
            assert connection.is_closed_by_broker()


@pytest.mark.parametrize("api_version", [5, 6, 99, 32767])
def test_a_newer_api_versions_gets_its_own_range_in_the_oldest_layout(
    subject: Subject, api_version: int
) -> None:
    asked = raw_requests.api_versions(api_version)
    with subject.connect() as connection:
        connection.send(asked)
        answer = raw_answers.versions(_oldest_layout(connection, asked), 0)
        assert answer.error_code == UNSUPPORTED_VERSION
        assert answer.apis == {18: (0, 4)}
        again = raw_requests.api_versions(answer.apis[18][1])
        assert raw_answers.versions(connection.ask(again), 4).error_code == NONE
        subject.check_good_requests(connection)


def _oldest_layout(connection: Connection, asked: Frame) -> Reader:
    answer = connection.receive()
    assert answer is not None and answer[:4] == asked.data[4:8]
    return answer_reader(18, 0, answer)


@pytest.mark.parametrize(
    ("name", "version"), [("", ""), ("a b", "1"), ("a", "ü"), ("-a", "1"), ("x" * 3000, "1.")]
)
def test_a_software_name_that_is_none(subject: Subject, name: str, version: str) -> None:
    asked = raw_requests.api_versions(3, name, version)
    with subject.connect() as connection:
        answer = raw_answers.versions(connection.ask(asked), 3)
        assert (answer.error_code, answer.apis) == (INVALID_REQUEST, {})
        subject.check_good_requests(connection)


@pytest.mark.parametrize("client", [b"\xff\xff", b"\x00\x00", b"\x00\x02\xff\xfe"])
def test_client_ids_of_any_kind(subject: Subject, client: bytes) -> None:
    """It is a label: none, empty, or bytes that are no UTF-8 keep nobody out."""
    with subject.connect() as connection:
        connection.send_bytes(with_length(header(18, 0, client)))
        answer = connection.receive()
        assert answer is not None
        assert raw_answers.versions(answer_reader(18, 0, answer), 0).error_code == NONE
