"""Wrong record batches are answered as Kafka 3.9.2 answers them, and nothing of them is written."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from tests.e2e import raw_answers, raw_batches, raw_requests
from tests.e2e.raw_batches import Record, batch, compressed, record_bytes
from tests.e2e.raw_wire import to_varint
from tests.e2e.subjects import KAFKA, Subject

NONE = 0
UNKNOWN_SERVER_ERROR = -1
CORRUPT_MESSAGE = 2
MESSAGE_TOO_LARGE = 10
RECORD_LIST_TOO_LARGE = 18
INVALID_REQUIRED_ACKS = 21
INVALID_TIMESTAMP = 32
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87

SILENCE = -1000
"""No answer at all."""

HOUR_MS = 3_600_000


class Case(NamedTuple):
    """A batch and its answer; Kafka's where ours is another on purpose, and then why."""

    name: str
    records: bytes | None
    error: int
    kafka_error: int | None = None
    why: str = ""

    def expected(self, subject: Subject) -> int:
        if subject.name == KAFKA and self.kafka_error is not None:
            return self.kafka_error
        return self.error


def record_of(*fields: int, before: bytes = b"\x00\x00\x00") -> bytes:
    """One record: attributes and the two deltas, then varints."""
    body = before + b"".join(to_varint(field) for field in fields)
    return to_varint(len(body)) + body


def idempotent(**fields: int) -> bytes:
    return batch(**{"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, **fields})


GOOD_RECORD = record_bytes(Record(), 0)

CHECKSUMS_AND_LENGTHS = [
    Case("checksum", batch(crc=1), CORRUPT_MESSAGE),
    Case("checksum-wins-over-structure", batch(crc=1, record_count=5), CORRUPT_MESSAGE),
    Case("length-below-any-batch", batch(length=5), CORRUPT_MESSAGE),
    Case("length-below-a-header", batch(length=48), CORRUPT_MESSAGE),
    Case("length-negative", batch(length=-1), CORRUPT_MESSAGE),
    Case("length-beyond-the-end", batch(length=1000), INVALID_RECORD),
    Case("magic-of-the-future", batch(magic=3), CORRUPT_MESSAGE),
    Case("magic-negative", batch(magic=-1), CORRUPT_MESSAGE),
    Case("magic-1-in-a-new-produce", raw_batches.message(b"old"), INVALID_RECORD),
    Case("magic-0-in-a-new-produce", raw_batches.message(b"old", magic=0), INVALID_RECORD),
    Case("magic-byte-1", batch(magic=1), INVALID_RECORD),
    Case("mixed-magic", batch() + raw_batches.message(b"old"), INVALID_RECORD),
    Case("two-batches", batch() + batch(), INVALID_RECORD),
    Case("no-bytes", b"", INVALID_RECORD),
    Case("seven-bytes", b"1234567", INVALID_RECORD),
    Case("null", None, INVALID_RECORD, SILENCE, "Kafka throws inside and never answers"),
]

STRUCTURE = [
    Case("count-0", batch([], last_offset_delta=-1), INVALID_RECORD),
    Case("count-0-with-a-delta", batch([], last_offset_delta=0), INVALID_RECORD),
    Case("count-negative", batch(record_count=-1), INVALID_RECORD),
    Case("count-above", batch(record_count=2, last_offset_delta=1), INVALID_RECORD),
    Case(
        "count-below",
        batch([Record(), Record()], record_count=1, last_offset_delta=0),
        INVALID_RECORD,
    ),
    Case(
        "count-of-two-billion",
        batch(record_count=2**31 - 1, last_offset_delta=2**31 - 2),
        INVALID_RECORD,
    ),
    Case("last-offset-delta-above", batch(last_offset_delta=5), INVALID_RECORD),
    Case("last-offset-delta-negative", batch(last_offset_delta=-1), INVALID_RECORD),
    Case("base-offset", batch(base_offset=5), INVALID_RECORD),
    Case("control", batch(attributes=0x20), INVALID_RECORD),
    Case("control-of-a-producer", idempotent(attributes=0x20), INVALID_RECORD),
    Case("sequence-minus-1", idempotent(base_sequence=-1), INVALID_RECORD),
    Case("sequence-minus-5", idempotent(base_sequence=-5), INVALID_RECORD),
    Case(
        "transactional",
        idempotent(attributes=0x10),
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
]

RECORDS = [
    Case("record-beyond-the-end", batch(payload=to_varint(100) + b"\0\0\0"), INVALID_RECORD),
    Case("record-length-negative", batch(payload=to_varint(-5) + b"\0\0\0"), INVALID_RECORD),
    Case("record-length-0", batch(payload=to_varint(0)), INVALID_RECORD),
    Case(
        "record-length-varint-too-long",
        batch(payload=b"\xff" * 11),
        INVALID_RECORD,
        UNKNOWN_SERVER_ERROR,
        "Kafka lets an unexpected exception out; the client learns nothing from -1",
    ),
    Case("record-ends-early", batch(payload=to_varint(2) + b"\0\0"), INVALID_RECORD),
    Case("key-beyond-the-record", batch(payload=record_of(50, -1, 0)), INVALID_RECORD),
    Case("headers-negative", batch(payload=record_of(-1, -1, -1)), INVALID_RECORD),
    Case("headers-too-many", batch(payload=record_of(-1, -1, 1000)), INVALID_RECORD),
    Case("header-without-a-name", batch(payload=record_of(-1, -1, 1, -1, -1)), INVALID_RECORD),
    Case(
        "bytes-behind-the-last-field",
        batch(payload=to_varint(len(GOOD_RECORD) + 1) + GOOD_RECORD[1:] + b"zz"),
        INVALID_RECORD,
    ),
    Case("bytes-behind-the-last-record", batch(payload=GOOD_RECORD + b"zzz"), INVALID_RECORD),
    Case("no-records", batch(payload=b""), INVALID_RECORD),
]

DAMAGED = "Kafka answers every broken compression with -1, which says nothing of whose fault it is"


def compressed_cases(codec: str) -> list[Case]:
    noise = record_bytes(Record(os.urandom(500)), 0)
    cut = compressed(codec, noise)[:100]
    longer = compressed(codec, GOOD_RECORD + b"zz")
    broken = (INVALID_RECORD, UNKNOWN_SERVER_ERROR, DAMAGED)
    return [
        Case(f"{codec}-of-noise", batch(codec=codec, payload=os.urandom(100)), *broken),
        Case(f"{codec}-cut", batch(codec=codec, payload=cut), *broken),
        Case(
            f"{codec}-of-too-few",
            batch(codec=codec, record_count=2, last_offset_delta=1),
            INVALID_RECORD,
        ),
        Case(f"{codec}-of-too-much", batch(codec=codec, payload=longer), INVALID_RECORD),
    ]


COMPRESSED = [
    *(case for codec in ("gzip", "snappy", "lz4", "zstd") for case in compressed_cases(codec)),
    *(Case(f"codec-{n}", batch(attributes=n), UNKNOWN_SERVER_ERROR) for n in (5, 6, 7)),
]

TOLERATED = [
    Case("bytes-behind-the-batch", batch() + b"abcdef", NONE),
    Case("offsets-twice-the-same", batch([Record(offset_delta=0), Record(offset_delta=0)]), NONE),
    Case("offsets-backwards", batch([Record(offset_delta=1), Record(offset_delta=0)]), NONE),
    Case("offset-negative", batch([Record(offset_delta=-1)]), NONE),
    Case("key-length-minus-2", batch(payload=record_of(-2, -1, 0)), NONE),
    Case(
        "attributes-of-a-record", batch(payload=GOOD_RECORD[:1] + b"\xff" + GOOD_RECORD[2:]), NONE
    ),
    Case("timestamp-negative", batch(base_timestamp=-5000), NONE),
    Case("latest-timestamp-wrong", batch(max_timestamp=5), NONE),
    Case("unused-attributes", batch(attributes=0x7F80), NONE),
    Case("time-type-of-the-broker", batch(attributes=0x08), NONE),
    Case("epoch-negative", idempotent(producer_epoch=-1), NONE),
    Case("producer-id-minus-2", idempotent(producer_id=-2), NONE),
]

CASES = [*CHECKSUMS_AND_LENGTHS, *STRUCTURE, *RECORDS, *COMPRESSED, *TOLERATED]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_wrong_batch_is_answered_and_not_written(subject: Subject, case: Case) -> None:
    place = subject.topic("batches")
    before = subject.log_end(place)
    asked = raw_requests.produce(9, place, case.records)
    with subject.connect() as connection:
        if case.expected(subject) == SILENCE:
            return
        answer = raw_answers.produced(asked, connection.ask(asked))
        assert answer.error_code == case.expected(subject), answer
        if case.error == NONE:
            assert answer.base_offset == before
            assert subject.log_end(place) > before
        else:
            assert answer.base_offset == -1
            assert subject.log_end(place) == before
        subject.check_good_requests(connection)
    subject.check_good_requests()


def test_batches_that_are_tolerated_are_numbered_anew(subject: Subject) -> None:
    """Offsets are the broker's: whatever a producer wrote there, consumers see dense ones."""
    place = subject.topic("numbered")
    start = subject.log_end(place)
    wrong = [Record(b"a", offset_delta=1), Record(b"b", offset_delta=0)]
    assert subject.produce(place, batch(wrong)).error_code == NONE
    assert subject.produce(place, batch([Record(b"c")])).base_offset == start + 2
    reading = raw_requests.fetch(11, [place], offset=start)
    with subject.connect() as connection:
        (partition,) = raw_answers.fetched(reading, connection.ask(reading)).partitions
    stored = raw_batches.stored_batches(partition.records)
    assert [(b.base_offset, b.record_count) for b in stored] == [(start, 2), (start + 2, 1)]


class Limited(NamedTuple):
    """A topic's config, a batch that it does not take, and the answer."""

    name: str
    configs: Mapping[str, str]
    records: bytes
    error: int
    record_errors: Sequence[int] = ()


def _now(shift_ms: int) -> bytes:
    """The second of two records lies apart from the wall clock."""
    rows = [Record(), Record(timestamp_delta=shift_ms)]
    return batch(rows, max_timestamp=raw_batches.wall_ms() + max(0, shift_ms))


LIMITED = [
    Limited(
        "max-message-bytes",
        {"max.message.bytes": "1000"},
        batch([Record(os.urandom(2000))]),
        MESSAGE_TOO_LARGE,
    ),
    Limited(
        "max-message-bytes-compressed",
        {"max.message.bytes": "1000"},
        batch([Record(os.urandom(2000))], codec="gzip"),
        MESSAGE_TOO_LARGE,
    ),
    Limited(
        "grows-above-max-message-bytes",
        {"max.message.bytes": "1000", "compression.type": "uncompressed"},
        batch([Record(bytes(2000))], codec="gzip"),
        MESSAGE_TOO_LARGE,
    ),
    Limited(
        "segment-bytes",
        {"max.message.bytes": "100000", "segment.bytes": "1000"},
        batch([Record(os.urandom(2000))]),
        RECORD_LIST_TOO_LARGE,
    ),
    Limited(
        "too-late",
        {"message.timestamp.after.max.ms": str(HOUR_MS)},
        _now(2 * HOUR_MS),
        INVALID_TIMESTAMP,
        [1],
    ),
    Limited(
        "too-early",
        {"message.timestamp.before.max.ms": str(HOUR_MS)},
        _now(-2 * HOUR_MS),
        INVALID_TIMESTAMP,
        [1],
    ),
    Limited(
        "without-a-key",
        {"cleanup.policy": "compact"},
        batch([Record(), Record(key=None)]),
        INVALID_RECORD,
        [1],
    ),
    Limited(
        "time-type-of-the-broker",
        {},
        batch(attributes=0x08, max_timestamp=-1),
        INVALID_TIMESTAMP,
        [0],
    ),
]


@pytest.mark.parametrize("case", LIMITED, ids=[case.name for case in LIMITED])
def test_what_a_topic_does_not_take(subject: Subject, case: Limited) -> None:
    place = subject.topic(f"limited-{case.name}", case.configs)
    answer = subject.produce(place, case.records)
    assert (answer.error_code, answer.record_errors) == (case.error, list(case.record_errors))
    assert subject.log_end(place) == 0
    assert subject.produce(place, batch()).error_code == NONE
    assert subject.log_end(place) == 1
    subject.check_good_requests()


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_acks_that_do_not_exist(subject: Subject, acks: int) -> None:
    place = subject.topic("acks")
    asked = raw_requests.produce(9, place, batch(), acks=acks)
    with subject.connect() as connection:
        answer = raw_answers.produced(asked, connection.ask(asked))
        assert answer.error_code == INVALID_REQUIRED_ACKS
        assert subject.log_end(place) == 0
        subject.check_good_requests(connection)


def test_a_wrong_batch_without_acknowledgement_closes(subject: Subject) -> None:
    """There is no other way to tell a producer with acks=0."""
    place = subject.topic("unacknowledged")
    with subject.connect() as connection:
        connection.send(raw_requests.produce(9, place, batch(crc=1), acks=0))
        assert connection.is_closed_by_broker()
    assert subject.log_end(place) == 0
    subject.check_good_requests()


class Old(NamedTuple):
    """What older versions of Produce bring that newer ones do not."""

    name: str
    api_version: int
    records: bytes
    error: int


OLD = [
    Old("message-checksum", 2, raw_batches.message(b"old", crc=1), CORRUPT_MESSAGE),
    Old("message-0-checksum", 1, raw_batches.message(b"old", 0, crc=1), CORRUPT_MESSAGE),
    Old("zstd-before-version-7", 6, batch(codec="zstd"), UNSUPPORTED_COMPRESSION_TYPE),
    Old("batch-checksum", 3, batch(crc=1), CORRUPT_MESSAGE),
]


@pytest.mark.parametrize("case", OLD, ids=[case.name for case in OLD])
def test_old_versions_of_produce(subject: Subject, case: Old) -> None:
    place = subject.topic("old")
    before = subject.log_end(place)
    answer = subject.produce(place, case.records, case.api_version)
    assert answer.error_code == case.error
    assert subject.log_end(place) == before
    subject.check_good_requests()
