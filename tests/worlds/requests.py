"""Requests that tests send often, with what a test rarely cares about filled in."""

from collections.abc import Iterable

from barnabas.formats.batches.builder import build_batch
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.reader import Record, batches_in, read_records
from barnabas.formats.codec.records import RecordsSpan
from barnabas.formats.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.formats.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId


def batch(
    values: Iterable[bytes],
    *,
    codec: CompressionCodec = CompressionCodec.NONE,
    timestamp: int = 1_700_000_000_000,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """A batch as a producer sends it."""
    records = [
        Record(offset, timestamp, f"k{offset}".encode(), value)
        for offset, value in enumerate(values)
    ]
    return build_batch(
        records,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def produce_request(
    topic: str,
    partitions: dict[int, bytes | None],
    *,
    acks: int = -1,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=index, records=data)
                    for index, data in partitions.items()
                ],
            )
        ],
    )


def produced(response: ProduceResponse) -> PartitionProduceResponse:
    """The answer about the one partition that was produced to."""
    (topic,) = response.responses
    (answer,) = topic.partition_responses
    return answer


def fetch_request(
    topic: str,
    offsets: dict[int, int],
    *,
    topic_id: TopicId = NO_TOPIC_ID,
    replica_id: int = -1,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 30,
    partition_max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    version: int = 17,
) -> FetchRequest:
    """A fetch of some partitions of one topic."""
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=leader_epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last_fetched_epoch,
                        partition_max_bytes=partition_max_bytes,
                    )
                    for index, offset in offsets.items()
                ],
            )
        ]
        if offsets
        else [],
    )
    if version >= 15:
        request.replica_state = ReplicaState(BrokerId(replica_id), -1)
    else:
        request.replica_id = BrokerId(replica_id)
    return request


def values_of(data: PartitionData) -> list[bytes | None]:
    """The values of all records in an answer's whole batches."""
    records = data.records
    if isinstance(records, RecordsSpan):
        records = records.to_bytes()
    assert isinstance(records, bytes) or records is None
    found: list[bytes | None] = []
    for position, header in batches_in(records or b"", 0, len(records or b"")):
        found += [record.value for record in read_records(records or b"", header, position)]
    return found
