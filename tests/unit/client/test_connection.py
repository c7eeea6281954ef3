"""A connection learns the broker's versions first, keeps answers in order, and has limits."""

import pytest

from barnabas.client.connection import IN_FLIGHT_MAX, Connection, choose_version
from barnabas.client.metadata import build_request
from barnabas.client.steps import Address, Failure, FailureKind, Request, Response
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import find_api
from barnabas.formats.wire.framing import response_parts
from barnabas.formats.wire.generated.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.formats.wire.generated.metadata import MetadataResponse
from barnabas.formats.wire.headers import decode_request_header
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import InvariantViolated

PLACE = Address("one", 9092)


def _metadata(is_answered: bool = True) -> Request:
    def build(version: int) -> object:
        return build_request((), version, False)

    return Request(PLACE, ApiKey.METADATA, build, 1000, is_answered=is_answered)


def _frame(key: ApiKey, version: int, correlation_id: int, body: object) -> bytes:
    (frame,) = response_parts(key, version, correlation_id, body)
    assert isinstance(frame, bytes)
    return frame


def _versions(*rows: tuple[ApiKey, int, int], error_code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in rows
        ],
    )


def _ready(*rows: tuple[ApiKey, int, int]) -> Connection:
    connection = Connection("tests", "1")
    connection.take_output()
    connection.receive(_frame(ApiKey.API_VERSIONS, 4, 0, _versions(*rows)))
    return connection


def _asked(output: bytes) -> tuple[int, int, int]:
    return decode_request_header(output, 4, len(output))[:3]


def test_versions_are_asked_for_before_anything_else():
    connection = Connection("tests", "1")
    connection.submit(7, _metadata())
    assert _asked(connection.take_output()) == (ApiKey.API_VERSIONS, 4, 0)
    connection.receive(_frame(ApiKey.API_VERSIONS, 4, 0, _versions((ApiKey.METADATA, 0, 9))))
    assert _asked(connection.take_output()) == (ApiKey.METADATA, 9, 1)
    connection.receive(_frame(ApiKey.METADATA, 9, 1, MetadataResponse(cluster_id="c")))
    ((token, answer),) = connection.take_answers()
    assert token == 7
    assert isinstance(answer, Response) and answer.body.cluster_id == "c"
    assert connection.is_idle


def test_a_broker_that_does_not_know_the_version_is_asked_again_in_the_oldest():
    connection = Connection("tests", "1")
    connection.take_output()
    refusal = _versions((ApiKey.API_VERSIONS, 0, 2), error_code=35)
    connection.receive(_frame(ApiKey.API_VERSIONS, 0, 0, refusal))
    assert _asked(connection.take_output()) == (ApiKey.API_VERSIONS, 0, 1)


@pytest.mark.parametrize(
    ("theirs", "max_version", "chosen"),
    [
        ((0, 12), None, 12),
        ((0, 99), None, 12),
        ((4, 9), None, 9),
        ((0, 12), 8, 8),
        ((13, 14), None, None),
        ((5, 12), 4, None),
        (None, None, None),
    ],
)
def test_the_newest_version_that_both_know_is_taken(
    theirs: tuple[int, int] | None, max_version: int | None, chosen: int | None
):
    assert choose_version(find_api(ApiKey.METADATA), theirs, max_version) == chosen


def test_an_api_that_the_broker_has_not_is_no_request():
    connection = _ready((ApiKey.PRODUCE, 0, 9))
    connection.submit(1, _metadata())
    ((_, answer),) = connection.take_answers()
    assert answer == Failure(FailureKind.UNSUPPORTED, "it does not serve Metadata")
    assert connection.take_output() == b""


def test_answers_may_come_in_pieces_and_together():
    connection = _ready((ApiKey.METADATA, 0, 12))
    for token in (1, 2):
        connection.submit(token, _metadata())
    frames = b"".join(
        _frame(ApiKey.METADATA, 12, number, MetadataResponse(cluster_id=f"{number}"))
        for number in (1, 2)
    )
    for at in range(len(frames)):
        connection.receive(frames[at : at + 1])
    answers = connection.take_answers()
    assert [(token, answer.body.cluster_id) for token, answer in answers] == [(1, "1"), (2, "2")]  # pyright: ignore


def test_what_is_not_answered_is_over_when_it_is_sent():
    connection = _ready((ApiKey.METADATA, 0, 12))
    connection.submit(1, _metadata(is_answered=False))
    connection.submit(2, _metadata())
    assert [token for token, _ in connection.take_answers()] == [1]
    connection.receive(_frame(ApiKey.METADATA, 12, 1, MetadataResponse()))
    assert [token for token, _ in connection.take_answers()] == [2]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"HTTP/1.1 400 Bad Request", "an HTTP server answered"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "a TLS listener answered"),
        (b"SSH-2.0-OpenSSH", "does not speak Kafka's protocol"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x63", "out of order"),
    ],
)
def test_what_is_no_answer_is_named(data: bytes, told: str):
    with pytest.raises(DecodeError, match=told):
        Connection("tests", "1").receive(data)


def test_a_lost_connection_fails_everybody_once():
    connection = Connection("tests", "1")
    connection.submit(1, _metadata())
    lost = Failure(FailureKind.LOST, "gone")
    connection.fail_all(lost)
    assert connection.take_answers() == [(1, lost)]
    connection.fail_all(lost)
    assert connection.take_answers() == []


def test_requests_in_flight_are_limited():
    connection = _ready((ApiKey.METADATA, 0, 12))
    for token in range(IN_FLIGHT_MAX):
        connection.submit(token, _metadata())
    with pytest.raises(InvariantViolated):
        connection.submit(99, _metadata())
