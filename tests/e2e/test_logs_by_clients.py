"""What clients are told of logs, by us and by a real Kafka; real clients ask, too."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from barnabas.formats.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.formats.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.formats.wire.generated.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.codec_client import ask
from tests.e2e.raw_batches import Record, batch
from tests.e2e.subjects import Subject

DELETE_RECORDS, DESCRIBE_LOG_DIRS, DESCRIBE_PRODUCERS = 21, 35, 61
NONE, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION = 0, 1, 3
INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION = 17, 44
SECONDS = 20.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("logs")
    with BrokerProcess(directory, {"num.partitions": "1"}) as running:
        yield running


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def send(broker: BrokerProcess, topic: str, count: int) -> None:
    """Records of an idempotent producer."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
    for number in range(count):
        producer.send(topic, b"%d" % number).get(SECONDS)
    producer.close()


# -- kafka-python --------------------------------------------------------------------------------


@pytest.mark.timeout(120)
def test_kafka_python_describes_directories(broker: BrokerProcess, admin: KafkaAdminClient) -> None:
    send(broker, "sized", 3)
    (told,) = admin.describe_log_dirs()
    text = repr(told)
    assert str(broker.log_dir) in text
    assert "sized" in text


@pytest.mark.timeout(120)
def test_kafka_python_describes_producers(broker: BrokerProcess, admin: KafkaAdminClient) -> None:
    send(broker, "produced", 3)
    partition = TopicPartition("produced", 0)
    told = admin.describe_producers([partition])[partition]
    (producer,) = told.active_producers
    assert (producer.producer_epoch, producer.last_sequence) == (0, 2)


@pytest.mark.timeout(120)
def test_kafka_python_deletes_records_and_a_kill_brings_none_back(
    broker: BrokerProcess, admin: KafkaAdminClient
) -> None:
    send(broker, "deleted", 5)
    partition = TopicPartition("deleted", 0)
    admin.delete_records({partition: 3})
    broker.kill()
    broker.start()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    try:
        consumer.assign([partition])
        assert consumer.beginning_offsets([partition]) == {partition: 3}
        consumer.seek_to_beginning(partition)
        assert next(consumer).value == b"3"
    finally:
        consumer.close()


# -- the same requests to both -------------------------------------------------------------------


def log_dirs(
    subject: Subject, asked: Sequence[tuple[str, list[int]]] | None, version: int
) -> list[tuple[int, list[Any], bool]]:
    """Each directory's error, its replicas, and whether its room was told."""
    topics = None
    if asked is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=some) for name, some in asked]
    body = DescribeLogDirsRequest(topics=topics)
    answer = ask(subject.port, DESCRIBE_LOG_DIRS, version, body)
    assert answer.error_code == 0
    return [
        (
            one.error_code,
            [
                (topic.name, row.partition_index, row.partition_size, row.offset_lag)
                for topic in one.topics
                for row in topic.partitions
                if not row.is_future_key
            ],
            0 < one.usable_bytes <= one.total_bytes,
        )
        for one in answer.results
    ]


@pytest.mark.parametrize("version", range(5))
def test_directories_get_kafkas_answers(subject: Subject, version: int) -> None:
    place = subject.topic("dirs")
    if subject.log_end(place) == 0:
        records = batch([Record(b"v")])
        assert subject.produce(place, records).error_code == 0
    size = len(batch([Record(b"v")]))
    here = [("dirs", 0, size, 0)]
    asked = [("dirs", [0, 7]), ("nosuch", [0]), ("dirs", [0])]
    assert log_dirs(subject, asked, version) == [(0, here, version >= 4)]
    assert log_dirs(subject, [], version) == [(0, [], version >= 4)]
    ((_, everything, _),) = log_dirs(subject, None, version)
    assert here[0] in everything


def producers(subject: Subject, topic: str, *indexes: int) -> list[Any]:
    body = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=list(indexes))]
    )
    (answer,) = ask(subject.port, DESCRIBE_PRODUCERS, 0, body).topics
    return [
        (
            one.partition_index,
            one.error_code,
            [
                (row.producer_id, row.producer_epoch, row.last_sequence, row.last_timestamp)
                for row in one.active_producers
            ],
        )
        for one in answer.partitions
    ]


def test_producers_get_kafkas_answers(subject: Subject) -> None:
    place = subject.topic("producers")
    assert producers(subject, "producers", 0) == [(0, 0, [])]
    for sequence in (0, 1):
        records = batch(
            [Record(b"v")],
            base_timestamp=1_700_000_000_000 + sequence,
            max_timestamp=1_700_000_000_000 + sequence,
            producer_id=4000,
            producer_epoch=3,
            base_sequence=sequence,
        )
        assert subject.produce(place, records).error_code == 0
    assert producers(subject, "producers", 0, 1, -1) == [
        (0, 0, [(4000, 3, 1, 1_700_000_000_001)]),
        (1, UNKNOWN_TOPIC_OR_PARTITION, []),
        (-1, UNKNOWN_TOPIC_OR_PARTITION, []),
    ]
    assert producers(subject, "nosuch", 0) == [(0, UNKNOWN_TOPIC_OR_PARTITION, [])]
    assert producers(subject, "no such", 0) == [(0, INVALID_TOPIC_EXCEPTION, [])]


def deleted(
    subject: Subject, topic: str, *rows: tuple[int, int], version: int = 2, timeout_ms: int = 5000
) -> dict[int, tuple[int, int]]:
    """DeleteRecords of one topic: low watermark and error by partition."""
    partitions = [DeleteRecordsPartition(partition_index=p, offset=offset) for p, offset in rows]
    topics = [DeleteRecordsTopic(name=topic, partitions=partitions)]
    body = DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)
    (answer,) = ask(subject.port, DELETE_RECORDS, version, body).topics
    return {one.partition_index: (one.low_watermark, one.error_code) for one in answer.partitions}


@pytest.mark.parametrize("version", range(3))
def test_deletions_get_kafkas_answers(subject: Subject, version: int) -> None:
    topic = f"deletions-{version}"
    place = subject.topic(topic)
    assert subject.produce(place, batch([Record(b"v")] * 5)).error_code == 0
    for rows, answers in (
        ([(0, 2)], {0: (2, NONE)}),
        ([(0, 1)], {0: (2, NONE)}),
        ([(0, -2)], {0: (-1, OFFSET_OUT_OF_RANGE)}),
        ([(0, 99)], {0: (-1, OFFSET_OUT_OF_RANGE)}),
        ([(0, 3), (0, 4)], {0: (4, NONE)}),
        ([(0, -1)], {0: (5, NONE)}),
        ([(7, -1), (-1, 0)], {
            7: (-1, UNKNOWN_TOPIC_OR_PARTITION), -1: (-1, UNKNOWN_TOPIC_OR_PARTITION)
        }),
    ):  # fmt: skip
        assert deleted(subject, topic, *rows, version=version) == answers
    assert deleted(subject, topic, (0, 5), version=version, timeout_ms=0) == {0: (5, NONE)}
    for name in ("nosuch", "no such"):
        unknown = {0: (-1, UNKNOWN_TOPIC_OR_PARTITION)}
        assert deleted(subject, name, (0, -1), version=version) == unknown


def test_deletions_that_the_topic_does_not_allow(subject: Subject) -> None:
    place = subject.topic("compacted", {"cleanup.policy": "compact"})
    keyed = batch([Record(b"v", key=b"k")])
    assert subject.produce(place, keyed).error_code == 0
    assert deleted(subject, "compacted", (0, 1)) == {0: (-1, POLICY_VIOLATION)}
    subject.topic("__consumer_offsets")
    refused = {0: (-1, INVALID_TOPIC_EXCEPTION)}
    assert deleted(subject, "__consumer_offsets", (0, 0)) == refused
