"""Fetch sessions, offsets and limits that make no sense."""

from typing import NamedTuple

import pytest

from tests.e2e import raw_answers, raw_requests
from tests.e2e.raw_answers import Fetched
from tests.e2e.raw_batches import Record, batch
from tests.e2e.raw_requests import Place
from tests.e2e.subjects import Subject

NONE = 0
UNKNOWN_SERVER_ERROR = -1
OFFSET_OUT_OF_RANGE = 1
UNSUPPORTED_VERSION = 35
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
UNKNOWN_LEADER_EPOCH = 75
UNKNOWN_TOPIC_ID = 100
FETCH_SESSION_TOPIC_ID_ERROR = 106


def fetch(subject: Subject, place: Place, api_version: int = 11, **fields: int) -> Fetched:
    asked = raw_requests.fetch(api_version, [place], **fields)  # type: ignore[arg-type]
    with subject.connect() as connection:
        answer = raw_answers.fetched(asked, connection.ask(asked))
        subject.check_good_requests(connection)
    return answer


@pytest.mark.parametrize(
    ("session_id", "session_epoch"), [(123, 1), (0, 5), (0, -5), (-5, 3), (2**30, 1)]
)
def test_a_session_that_is_not_there(subject: Subject, session_id: int, session_epoch: int) -> None:
    place = subject.topic("sessions")
    answer = fetch(subject, place, session_id=session_id, session_epoch=session_epoch)
    assert answer == Fetched(FETCH_SESSION_ID_NOT_FOUND, 0, [])


def test_a_session_out_of_step(subject: Subject) -> None:
    place = subject.topic("sessions")
    session_id = fetch(subject, place, session_epoch=0).session_id
    assert session_id != 0

    def error(epoch: int, api_version: int = 11) -> int:
        answer = fetch(subject, place, api_version, session_id=session_id, session_epoch=epoch)
        return answer.error_code

    assert error(2) == INVALID_FETCH_SESSION_EPOCH
    assert error(1) == NONE
    assert error(1) == INVALID_FETCH_SESSION_EPOCH
    assert error(2) == NONE
    assert error(3, api_version=13) == FETCH_SESSION_TOPIC_ID_ERROR
    assert error(3) == NONE
    assert error(-1) == NONE
    assert error(4) == FETCH_SESSION_ID_NOT_FOUND


def test_a_session_is_not_hurt_by_another(subject: Subject) -> None:
    place = subject.topic("sessions")
    mine = fetch(subject, place, session_epoch=0).session_id
    theirs = fetch(subject, place, session_epoch=0).session_id
    assert mine != theirs
    wrong = fetch(subject, place, session_id=mine, session_epoch=9)
    assert wrong.error_code == INVALID_FETCH_SESSION_EPOCH
    assert fetch(subject, place, session_id=theirs, session_epoch=1).error_code == NONE


class Wrong(NamedTuple):
    """Fields of a fetch, and what the partition says."""

    name: str
    fields: dict[str, int]
    error: int


WRONG_FETCHES = [
    Wrong("offset-above", {"offset": 99}, OFFSET_OUT_OF_RANGE),
    Wrong("offset-minus-1", {"offset": -1}, OFFSET_OUT_OF_RANGE),
    Wrong("offset-smallest", {"offset": -(2**63)}, OFFSET_OUT_OF_RANGE),
    Wrong("offset-greatest", {"offset": 2**63 - 1}, OFFSET_OUT_OF_RANGE),
    Wrong("max-bytes-negative", {"max_bytes": -1}, NONE),
    Wrong("max-bytes-0", {"max_bytes": 0}, NONE),
    Wrong("partition-max-bytes-negative", {"partition_max_bytes": -1}, NONE),
    Wrong("min-bytes-negative", {"min_bytes": -1}, NONE),
    Wrong("wait-negative", {"max_wait_ms": -1}, NONE),
    Wrong("min-bytes-greatest", {"min_bytes": 2**31 - 1, "max_wait_ms": 50}, NONE),
    Wrong("replica-that-is-none", {"replica_id": 5}, UNKNOWN_LEADER_EPOCH),
    Wrong("replica-that-is-the-leader", {"replica_id": 1}, UNKNOWN_LEADER_EPOCH),
    Wrong("replica-minus-77", {"replica_id": -77}, NONE),
]


@pytest.mark.parametrize("case", WRONG_FETCHES, ids=[case.name for case in WRONG_FETCHES])
def test_a_fetch_that_makes_no_sense(subject: Subject, case: Wrong) -> None:
    place = subject.topic("fetches")
    (partition,) = fetch(subject, place, **case.fields).partitions
    assert partition.error_code == case.error


def test_a_batch_above_every_limit_is_still_given(subject: Subject) -> None:
    """Otherwise a consumer with small limits would never get past it."""
    place = subject.topic("fetch-limits")
    offset = subject.produce(place, batch([Record(b"x" * 5000)])).base_offset
    for limits in ({"max_bytes": 1}, {"partition_max_bytes": 1}, {"max_bytes": 0}):
        (partition,) = fetch(subject, place, offset=offset, **limits).partitions
        assert len(partition.records or b"") > 5000


def test_a_topic_id_that_nobody_has(subject: Subject) -> None:
    for topic_id in (bytes(16), b"\x01" * 16):
        answer = fetch(subject, Place("", topic_id), api_version=13)
        assert [row.error_code for row in answer.partitions] == [UNKNOWN_TOPIC_ID]


def test_a_last_fetched_epoch_of_the_future(subject: Subject) -> None:
    place = subject.topic("fetch-future")
    (partition,) = fetch(subject, place, api_version=12, last_fetched_epoch=7).partitions
    assert partition.error_code == OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("api_version", "timestamp", "error"),
    [
        (1, -3, UNSUPPORTED_VERSION),
        (5, -3, UNSUPPORTED_VERSION),
        (7, -3, NONE),
        (7, -4, UNSUPPORTED_VERSION),
        (8, -4, NONE),
        (9, -6, UNSUPPORTED_VERSION),
        (9, -100, UNSUPPORTED_VERSION),
        (9, -(2**63), UNSUPPORTED_VERSION),
        (9, 2**63 - 1, NONE),
    ],
)
def test_times_that_are_no_times(
    subject: Subject, api_version: int, timestamp: int, error: int
) -> None:
    place = subject.topic("times")
    asked = raw_requests.list_offsets(api_version, place, timestamp=timestamp)
    with subject.connect() as connection:
        answer = raw_answers.listed_offset(asked, connection.ask(asked))
        assert answer.error_code == error
        subject.check_good_requests(connection)


@pytest.mark.parametrize("isolation_level", [2, 7, -1, 127])
def test_an_isolation_level_that_is_none(subject: Subject, isolation_level: int) -> None:
    """Not to be taken for the weakest one."""
    place = subject.topic("isolation")
    for api_version in (4, 6, 7, 11, 12):
        answer = fetch(subject, place, api_version, isolation_level=isolation_level)
        assert [row.error_code for row in answer.partitions] == [UNKNOWN_SERVER_ERROR]
        assert answer.error_code == (UNKNOWN_SERVER_ERROR if api_version >= 7 else NONE)
    for api_version in (2, 5, 9):
        asked = raw_requests.list_offsets(api_version, place, isolation_level=isolation_level)
        with subject.connect() as connection:
            listed = raw_answers.listed_offset(asked, connection.ask(asked))
        assert listed.error_code == UNKNOWN_SERVER_ERROR
