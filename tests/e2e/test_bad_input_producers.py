"""Idempotent producers out of step are answered as Kafka 3.9.2 answers them.

UNKNOWN_PRODUCER_ID (59) is no longer sent by Kafka 3.9: a producer that a partition does not know
starts anew with whatever sequence it sends. PRODUCER_FENCED (90) belongs to transactions.
"""

import time
from typing import NamedTuple

import pytest

from tests.e2e import raw_answers, raw_requests
from tests.e2e.raw_answers import GivenProducerId
from tests.e2e.raw_batches import Record, batch
from tests.e2e.raw_requests import Place
from tests.e2e.raw_wire import Frame
from tests.e2e.subjects import Subject

NONE = 0
COORDINATOR_LOAD_IN_PROGRESS = 14
INVALID_REQUEST = 42
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47

LAST_SEQUENCE = 2**31 - 1
GIVEN_SECONDS = 20.0


def ask_producer_id(subject: Subject, asked: Frame) -> GivenProducerId:
    """Ask until the broker has ids to give: the first may wait for a block of them."""
    deadline = time.monotonic() + GIVEN_SECONDS
    with subject.connect() as connection:
        while True:
            given = raw_answers.given_producer_id(connection.ask(asked))
            if given.error_code != COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline:
                return given


class Producer:
    """One producer id on a partition of its own."""

    def __init__(self, subject: Subject, topic: str) -> None:
        self.subject = subject
        self.place: Place = subject.topic(f"producers-{topic}")
        given = ask_producer_id(subject, raw_requests.init_producer_id(4))
        assert (given.error_code, given.producer_epoch) == (NONE, 0)
        self.id = given.producer_id

    def send(self, sequence: int, epoch: int = 0, count: int = 1) -> tuple[int, int]:
        """Error and offset of a batch of `count` records from `sequence` on."""
        records = batch(
            [Record()] * count,
            producer_id=self.id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        answer = self.subject.produce(self.place, records)
        return answer.error_code, answer.base_offset

    def fill(self, count: int) -> None:
        """Batches of one record in order."""
        for sequence in range(count):
            assert self.send(sequence) == (NONE, sequence)


def test_a_gap_in_the_sequence_is_refused(subject: Subject) -> None:
    producer = Producer(subject, "gap")
    producer.fill(1)
    assert producer.send(2) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert subject.log_end(producer.place) == 1
    assert producer.send(1) == (NONE, 1)
    subject.check_good_requests()


def test_the_last_five_duplicates_return_their_offset(subject: Subject) -> None:
    producer = Producer(subject, "duplicates")
    producer.fill(6)
    for sequence in range(1, 6):
        assert producer.send(sequence) == (NONE, sequence)
    assert producer.send(0) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert subject.log_end(producer.place) == 6


def test_a_batch_that_overlaps_is_no_duplicate(subject: Subject) -> None:
    producer = Producer(subject, "overlap")
    producer.fill(3)
    assert producer.send(2, count=2) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.send(1, count=2) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert subject.log_end(producer.place) == 3


def test_an_older_epoch_is_refused_and_a_newer_one_begins_at_zero(subject: Subject) -> None:
    producer = Producer(subject, "epochs")
    producer.fill(2)
    assert producer.send(5, epoch=3) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.send(2, epoch=0) == (NONE, 2)
    assert producer.send(0, epoch=3) == (NONE, 3)
    assert producer.send(1, epoch=2) == (INVALID_PRODUCER_EPOCH, -1)
    assert producer.send(3, epoch=0) == (INVALID_PRODUCER_EPOCH, -1)
    assert producer.send(1, epoch=3) == (NONE, 4)
    assert subject.log_end(producer.place) == 5


def test_an_unknown_producer_starts_where_it_says(subject: Subject) -> None:
    producer = Producer(subject, "unknown")
    assert producer.send(7) == (NONE, 0)
    assert producer.send(8) == (NONE, 1)
    assert producer.send(10) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_sequences_wrap_around(subject: Subject) -> None:
    single = Producer(subject, "wrap")
    assert single.send(LAST_SEQUENCE) == (NONE, 0)
    assert single.send(0) == (NONE, 1)
    assert single.send(1) == (NONE, 2)
    inside = Producer(subject, "wrap-inside")
    assert inside.send(LAST_SEQUENCE - 1, count=3) == (NONE, 0)
    assert inside.send(2) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert inside.send(1) == (NONE, 3)


def test_one_wrong_producer_leaves_another_alone(subject: Subject) -> None:
    first = Producer(subject, "pair")
    second = Producer(subject, "pair")
    assert first.id != second.id
    assert first.send(0) == (NONE, 0)
    assert first.send(9) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert second.send(0) == (NONE, 1)
    assert first.send(1) == (NONE, 2)


class Asked(NamedTuple):
    """Fields of an InitProducerId that do not go together."""

    name: str
    frame: Frame


WRONG_REQUESTS = [
    Asked("empty-transactional-id", raw_requests.init_producer_id(4, transactional_id="")),
    Asked("id-without-epoch", raw_requests.init_producer_id(4, producer_id=5)),
    Asked("epoch-without-id", raw_requests.init_producer_id(4, producer_epoch=5)),
]


@pytest.mark.parametrize("asked", WRONG_REQUESTS, ids=[asked.name for asked in WRONG_REQUESTS])
def test_a_producer_id_is_not_given_for_nonsense(subject: Subject, asked: Asked) -> None:
    given = ask_producer_id(subject, asked.frame)
    assert given == GivenProducerId(INVALID_REQUEST, -1, -1)
    subject.check_good_requests()
