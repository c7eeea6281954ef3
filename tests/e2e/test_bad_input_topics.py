"""Wrong topic names, and wrong requests to create, expand and delete topics."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tests.behaviours import behaviour
from tests.e2e import raw_answers, raw_requests
from tests.e2e.raw_batches import batch
from tests.e2e.raw_requests import Place
from tests.e2e.subjects import KAFKA, Subject

NONE = 0
UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
REQUEST_TIMED_OUT = 7
INVALID_TOPIC_EXCEPTION = 17
TOPIC_AUTHORIZATION_FAILED = 29
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42
UNKNOWN_TOPIC_ID = 100

LONGEST = "n" * 249

WRONG_NAMES = {
    "empty": "",
    "dot": ".",
    "two-dots": "..",
    "too-long": "n" * 250,
    "blank": "a b",
    "letter-that-is-not-ascii": "ü",
    "slash": "a/b",
    "path-upwards": "../../etc/passwd",
    "zero-byte": "a\x00b",
    "line-end": "a\nb",
    "percent": "%2e%2e%2f",
}


def create(subject: Subject, names: Sequence[str], **fields: object) -> dict[str | None, int]:
    asked = raw_requests.create_topics(4, names, **fields)  # type: ignore[arg-type]
    with subject.connect() as connection:
        return raw_answers.created_topics(asked, connection.ask(asked))


def error_in_metadata(subject: Subject, name: str) -> int:
    asked = raw_requests.metadata(9, [name], allow_creation=True)
    with subject.connect() as connection:
        (topic,) = raw_answers.described(asked, connection.ask(asked)).topics
    return topic.error_code


@behaviour("C7")
@pytest.mark.parametrize("name", WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_a_wrong_name_makes_no_topic(subject: Subject, name: str) -> None:
    assert create(subject, [name]) == {name: INVALID_TOPIC_EXCEPTION}
    assert error_in_metadata(subject, name) == INVALID_TOPIC_EXCEPTION
    subject.check_good_requests()


@behaviour("C7")
def test_a_name_as_long_as_can_be_makes_a_topic(subject: Subject) -> None:
    assert create(subject, [LONGEST]) in ({LONGEST: NONE}, {LONGEST: TOPIC_ALREADY_EXISTS})
    place = subject.describe(LONGEST)
    assert subject.produce(place, batch()).error_code == NONE


@behaviour("C7")
def test_a_name_that_differs_by_a_dot_collides(subject: Subject) -> None:
    subject.topic("collide_here")
    assert create(subject, ["collide.here"]) == {"collide.here": INVALID_TOPIC_EXCEPTION}
    assert error_in_metadata(subject, "collide.here") == INVALID_TOPIC_EXCEPTION


def test_a_name_of_32767_bytes_is_refused(subject: Subject) -> None:
    """Kafka's own message about it does not fit into its answer: it says -1."""
    name = "n" * 32767
    expected = UNKNOWN_SERVER_ERROR if subject.name == KAFKA else INVALID_TOPIC_EXCEPTION
    assert create(subject, [name]) == {name: expected}
    assert error_in_metadata(subject, name) == INVALID_TOPIC_EXCEPTION
    subject.check_good_requests()


@pytest.mark.parametrize("name", WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_a_wrong_name_is_an_unknown_topic_to_all_others(subject: Subject, name: str) -> None:
    place = Place(name)
    producing = raw_requests.produce(9, place, batch())
    fetching = raw_requests.fetch(11, [place])
    listing = raw_requests.list_offsets(5, place)
    deleting = raw_requests.delete_topics(4, [name])
    with subject.connect() as connection:
        produced = raw_answers.produced(producing, connection.ask(producing))
        fetched = raw_answers.fetched(fetching, connection.ask(fetching))
        listed = raw_answers.listed_offset(listing, connection.ask(listing))
        deleted = raw_answers.deleted_topics(deleting, connection.ask(deleting))
        subject.check_good_requests(connection)
    assert produced.error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert fetched.partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert listed.error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert deleted == [(name, UNKNOWN_TOPIC_OR_PARTITION)]


class Wrong(NamedTuple):
    """A topic that cannot be made; Kafka's answer where ours is another on purpose."""

    name: str
    fields: dict[str, object]
    error: int
    kafka_error: int | None = None
    why: str = ""


def placed(*rows: tuple[int, Sequence[int]]) -> dict[str, object]:
    return {"partitions": -1, "replication_factor": -1, "assignments": rows}


LEADERLESS = "Kafka makes a topic that nobody can ever lead"

WRONG_TOPICS = [
    Wrong("no-partitions", {"partitions": 0}, INVALID_PARTITIONS),
    Wrong("negative-partitions", {"partitions": -5}, INVALID_PARTITIONS),
    Wrong("no-replicas", {"replication_factor": 0}, INVALID_REPLICATION_FACTOR),
    Wrong("negative-replicas", {"replication_factor": -3}, INVALID_REPLICATION_FACTOR),
    Wrong("more-replicas-than-brokers", {"replication_factor": 5}, INVALID_REPLICATION_FACTOR),
    Wrong("count-and-placement", {"assignments": [(0, [1])], "partitions": 2}, INVALID_REQUEST),
    Wrong(
        "placed-nowhere",
        placed((0, [])),
        INVALID_REPLICA_ASSIGNMENT,
        REQUEST_TIMED_OUT,
        LEADERLESS,
    ),
    Wrong("placed-twice-on-one", placed((0, [1, 1])), INVALID_REPLICA_ASSIGNMENT),
    Wrong("placed-from-one-on", placed((1, [1])), INVALID_REPLICA_ASSIGNMENT),
    Wrong(
        "placed-below-zero",
        placed((-1, [1])),
        INVALID_REPLICA_ASSIGNMENT,
        UNKNOWN_SERVER_ERROR,
        "Kafka lets an unexpected exception out",
    ),
    Wrong(
        "placed-on-a-negative-broker",
        placed((0, [-1])),
        INVALID_REPLICA_ASSIGNMENT,
        REQUEST_TIMED_OUT,
        LEADERLESS,
    ),
    Wrong("unequal-replicas", placed((0, [1]), (1, [1, 2])), INVALID_REPLICA_ASSIGNMENT),
    Wrong("null-config", {"configs": [("retention.ms", None)]}, INVALID_CONFIG),
    Wrong("unknown-config", {"configs": [("retention.years", "1")]}, INVALID_CONFIG),
    Wrong("config-of-no-number", {"configs": [("retention.ms", "soon")]}, INVALID_CONFIG),
    Wrong("config-too-small", {"configs": [("segment.bytes", "1")]}, INVALID_CONFIG),
]


@behaviour("C10", "C11")
@pytest.mark.parametrize("case", WRONG_TOPICS, ids=[case.name for case in WRONG_TOPICS])
def test_a_topic_that_cannot_be_made(subject: Subject, case: Wrong) -> None:
    name = f"wrong-{case.name}"
    expected = case.error
    if subject.name == KAFKA and case.kafka_error is not None:
        expected = case.kafka_error
    assert create(subject, [name], timeout_ms=1500, **case.fields) == {name: expected}
    if expected != REQUEST_TIMED_OUT:
        asked = raw_requests.metadata(4, [name], allow_creation=False)
        with subject.connect() as connection:
            (topic,) = raw_answers.described(asked, connection.ask(asked)).topics
        assert topic.error_code == UNKNOWN_TOPIC_OR_PARTITION
    subject.check_good_requests()


def test_more_partitions_than_one_request_may_make(ours: Subject) -> None:
    """Kafka in ZooKeeper mode has no limit: it works until its memory is used up."""
    answer = create(ours, ["wrong-two-billion"], partitions=2**31 - 1)
    assert answer == {"wrong-two-billion": INVALID_PARTITIONS}
    ours.check_good_requests()


@behaviour("C10")
def test_a_name_twice_in_one_request_is_made_not_even_once(subject: Subject) -> None:
    asked = raw_requests.create_topics(4, ["wrong-twice", "wrong-twice"])
    with subject.connect() as connection:
        reader = connection.ask(asked)
        reader.int32()
        rows = reader.array(lambda: (reader.string(), reader.int16(), reader.string()))
    assert {(name, error) for name, error, _ in rows} == {("wrong-twice", INVALID_REQUEST)}
    subject.check_good_requests()


WRONG_EXPANSIONS = [
    Wrong("fewer", {"count": 0}, INVALID_PARTITIONS),
    Wrong("negative", {"count": -1}, INVALID_PARTITIONS),
    Wrong("as-many", {"count": 1}, INVALID_PARTITIONS),
    Wrong("on-no-broker", {"count": 2, "assignments": [[5]]}, INVALID_REPLICA_ASSIGNMENT),
    Wrong("too-few-places", {"count": 2, "assignments": []}, INVALID_REPLICA_ASSIGNMENT),
    Wrong("nowhere", {"count": 2, "assignments": [[]]}, INVALID_REPLICA_ASSIGNMENT),
    Wrong("twice-on-one", {"count": 2, "assignments": [[1, 1]]}, INVALID_REPLICA_ASSIGNMENT),
]


@behaviour("M3", "M5")
@pytest.mark.parametrize("case", WRONG_EXPANSIONS, ids=[case.name for case in WRONG_EXPANSIONS])
def test_a_topic_that_cannot_be_expanded(subject: Subject, case: Wrong) -> None:
    place = subject.topic("wrong-expansions")
    asked = raw_requests.create_partitions(1, place.topic, **case.fields)  # type: ignore[arg-type]
    with subject.connect() as connection:
        answer = raw_answers.expanded_topics(connection.ask(asked))
        assert answer == [(place.topic, case.error)]
        subject.check_good_requests(connection)
    elsewhere = place._replace(partition=1)
    assert subject.produce(elsewhere, batch()).error_code == UNKNOWN_TOPIC_OR_PARTITION


@behaviour("M4")
def test_a_topic_that_is_not_there_cannot_be_expanded(subject: Subject) -> None:
    asked = raw_requests.create_partitions(1, "wrong-unknown", 3)
    with subject.connect() as connection:
        answer = raw_answers.expanded_topics(connection.ask(asked))
    assert answer == [("wrong-unknown", UNKNOWN_TOPIC_OR_PARTITION)]


@behaviour("D2")
def test_a_deletion_that_does_not_say_what(subject: Subject) -> None:
    place = subject.topic("wrong-deletion")
    both = raw_requests.delete_topics(6, [place.topic], topic_id=place.topic_id)
    unknown = raw_requests.delete_topics(6, [None], topic_id=b"\x01" * 16)
    with subject.connect() as connection:
        answer = raw_answers.deleted_topics(both, connection.ask(both))
        assert [error for _, error in answer] == [INVALID_REQUEST]
        answer = raw_answers.deleted_topics(unknown, connection.ask(unknown))
        assert answer == [(None, UNKNOWN_TOPIC_ID)]
        subject.check_good_requests(connection)
    assert subject.produce(place, batch()).error_code == NONE


def test_a_deletion_of_nothing(subject: Subject) -> None:
    """Neither name nor id: Kafka takes it for a topic that the client may not see."""
    asked = raw_requests.delete_topics(6, [None])
    with subject.connect() as connection:
        ((name, error),) = raw_answers.deleted_topics(asked, connection.ask(asked))
    expected = TOPIC_AUTHORIZATION_FAILED if subject.name == KAFKA else UNKNOWN_TOPIC_OR_PARTITION
    assert (name, error) == (None, expected)
    subject.check_good_requests()
