"""Produce: what is taken, what is refused and how, when it is answered."""

import random
import struct

import pytest

from barnabas.broker.ports import ConnectionId
from barnabas.broker.replicas import PartitionWentOffline
from barnabas.formats.batches.compression import CompressionCodec, compress
from barnabas.formats.batches.header import BatchHeader, encode_batch
from barnabas.formats.batches.old_magic import build_message_set
from barnabas.formats.batches.reader import Record
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.update_metadata import UpdateMetadataPartitionState
from barnabas.model.epochs import PartitionEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskLost
from barnabas.model.ids import BrokerId, TopicId
from tests.behaviours import behaviour
from tests.worlds.one_broker import TOPIC, TOPIC_ID, OneLeader
from tests.worlds.requests import batch, produce_request, produced, values_of
from tests.worlds.virtual_world import EPOCH_MS, plan


@pytest.fixture
def world() -> OneLeader:
    return OneLeader()


def crc_of(data: bytes) -> bytes:
    """The same batch with a checksum that fits whatever was changed in it."""
    header = BatchHeader(data, 0)
    return encode_batch(
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=header.record_count,
        records=data[61:],
    )


def with_field(data: bytes, at: int, layout: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, value)
    return crc_of(bytes(changed))


@pytest.mark.parametrize("version", range(3, 12))
@pytest.mark.parametrize("acks", [1, -1])
def test_every_version_of_batches_is_taken(world: OneLeader, version: int, acks: int) -> None:
    answer = world.produce(batch([b"a", b"b"]), version=version, acks=acks)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert world.produce(batch([b"c"]), version=version, acks=acks).base_offset == 2
    assert values_of(world.fetch()) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_every_codec_is_kept_as_it_came(world: OneLeader, codec: CompressionCodec) -> None:
    data = batch([b"v" * 100] * 10, codec=codec)
    assert world.produce(data).error_code == ErrorCode.NONE
    records = world.fetch().records
    assert records is not None
    assert records.to_bytes()[16:] == data[16:]  # type: ignore[union-attr]


def test_acks_0_is_answered_by_silence_and_the_next_request_is_answered(
    world: OneLeader,
) -> None:
    client = world.client(1)
    silent = client.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: batch([b"a"])}, acks=0))
    body = produce_request(TOPIC, {0: batch([b"b"])}, acks=1)
    assert produced(client.call(ApiKey.PRODUCE, 9, body)).base_offset == 1
    assert silent not in client.answers


def test_an_error_with_acks_0_closes_the_connection(world: OneLeader) -> None:
    client = world.client(1)
    client.send(ApiKey.PRODUCE, 9, produce_request("nosuch", {0: batch([b"a"])}, acks=0))
    world.run(10)
    assert client.closed_reason


@pytest.mark.parametrize("acks", [-2, 2, 100])
def test_acks_that_do_not_exist_are_refused(world: OneLeader, acks: int) -> None:
    assert world.produce(batch([b"a"]), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert world.log().log_end_offset == 0


def test_many_partitions_are_answered_each_for_itself(world: OneLeader) -> None:
    body = produce_request(TOPIC, {0: batch([b"a"]), 9: batch([b"x"]), 1: batch([b"b", b"c"])})
    (topic,) = world.asking.call(ApiKey.PRODUCE, 9, body).responses
    assert [(p.index, p.error_code, p.base_offset) for p in topic.partition_responses] == [
        (0, 0, 0),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (1, 0, 0),
    ]


def test_one_turn_costs_one_write_per_partition(world: OneLeader) -> None:
    client = world.client(1)
    for _ in range(5):
        client.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: batch([b"a"])}, acks=1))
    writes: list[int] = []
    append = world.host.disk.append
    world.host.disk.append = lambda file, parts: (writes.append(len(parts)), append(file, parts))[1]  # type: ignore[method-assign,assignment,func-returns-value]
    world.run(10)
    assert len(client.answers) == 5
    assert len(writes) == 1


def test_of_a_partition_named_twice_the_last_batch_counts(world: OneLeader) -> None:
    body = produce_request(TOPIC, {0: batch([b"first"]), 1: batch([b"other"])})
    body.topic_data += produce_request(TOPIC, {0: batch([b"last"])}).topic_data
    (topic,) = world.asking.call(ApiKey.PRODUCE, 9, body).responses
    assert [(p.index, p.error_code, p.base_offset) for p in topic.partition_responses] == [
        (0, 0, 0),
        (1, 0, 0),
    ]
    assert values_of(world.fetch()) == [b"last"]
    assert values_of(world.fetch(index=1)) == [b"other"]


def equal_records(count: int, codec: CompressionCodec) -> bytes:
    """A small batch of many records of seven bytes."""
    plain = b"".join(
        b"%c\0\0%b\1\1\0" % (2 * (5 + len(delta)), delta) for delta in map(varint, range(count))
    )
    return encode_batch(
        base_offset=0,
        partition_leader_epoch=-1,
        attributes=int(codec),
        last_offset_delta=count - 1,
        base_timestamp=EPOCH_MS,
        max_timestamp=EPOCH_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
        records=compress(codec, plain),
    )


def varint(number: int) -> bytes:
    raw = number << 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes((*out, raw))


class TestWorkOfOneRequest:
    """However many batches are in a request, judging them has an end."""

    @pytest.mark.parametrize("codec", [CompressionCodec.ZSTD, CompressionCodec.GZIP])
    def test_records_are_counted_over_all_partitions(
        self, world: OneLeader, codec: CompressionCodec
    ) -> None:
        data = equal_records(400_000, codec)
        body = produce_request(TOPIC, {0: data, 1: data, 2: data})
        (topic,) = world.asking.call(ApiKey.PRODUCE, 9, body).responses
        assert [answer.error_code for answer in topic.partition_responses] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.MESSAGE_TOO_LARGE,
        ]
        message = topic.partition_responses[2].error_message
        assert message is not None
        assert "send smaller batches, or fewer at once" in message
        assert world.produce(data, index=2).error_code == ErrorCode.NONE

    def test_decompressed_bytes_are_counted_over_all_partitions(self, world: OneLeader) -> None:
        noise = random.Random(1).randbytes(60_000)
        data = batch([noise + b"v" * 50_000_000], codec=CompressionCodec.ZSTD)
        body = produce_request(TOPIC, {0: data, 1: data, 2: data})
        (topic,) = world.asking.call(ApiKey.PRODUCE, 9, body).responses
        assert [answer.error_code for answer in topic.partition_responses] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.MESSAGE_TOO_LARGE,
        ]

    def test_what_is_broken_behind_its_bytes_counts_too(self, world: OneLeader) -> None:
        noise = random.Random(1).randbytes(10_000)
        good = batch([noise + b"v" * 50_000_000], codec=CompressionCodec.GZIP)
        broken = crc_of(good[:-8] + bytes(8))
        body = produce_request(TOPIC, {0: broken, 1: broken, 2: broken})
        (topic,) = world.asking.call(ApiKey.PRODUCE, 9, body).responses
        assert [answer.error_code for answer in topic.partition_responses] == [
            ErrorCode.INVALID_RECORD,
            ErrorCode.INVALID_RECORD,
            ErrorCode.MESSAGE_TOO_LARGE,
        ]

    def test_a_topic_of_large_messages_takes_one_of_them(self) -> None:
        world = OneLeader({"max.message.bytes": "60000000"})
        noise = random.Random(1).randbytes(100_000)
        data = batch([noise + b"v" * 50_000_000], codec=CompressionCodec.ZSTD)
        assert world.produce(data).error_code == ErrorCode.NONE

    def test_records_that_are_written_anew_count_more(self, world: OneLeader) -> None:
        data = build_message_set(
            [Record(offset, EPOCH_MS, None, b"v") for offset in range(30_000)], magic=1
        )
        body = produce_request(TOPIC, {0: data, 1: data})
        (topic,) = world.asking.call(ApiKey.PRODUCE, 2, body).responses
        assert [answer.error_code for answer in topic.partition_responses] == [
            ErrorCode.NONE,
            ErrorCode.MESSAGE_TOO_LARGE,
        ]

    def test_compressing_anew_counts_more(self) -> None:
        world = OneLeader({"compression.type": "zstd"})
        data = batch([b"v" * 900_000])
        body = produce_request(TOPIC, {0: data, 1: data, 2: data})
        (topic,) = world.asking.call(ApiKey.PRODUCE, 9, body).responses
        assert {answer.error_code for answer in topic.partition_responses} == {ErrorCode.NONE}
        noise = random.Random(1).randbytes(60_000)
        large = batch([noise + b"v" * 20_000_000], codec=CompressionCodec.GZIP)
        assert world.produce(large).error_code == ErrorCode.MESSAGE_TOO_LARGE


class TestWhoLeads:
    @behaviour("L27")
    def test_unknown_hosted_and_led_elsewhere(self, world: OneLeader) -> None:
        elsewhere = {5: plan(2, 3, (2,), (2,))}
        world.tell_metadata(1, TOPIC, TOPIC_ID, elsewhere, [1, 2])
        world.tell_leader(1, TOPIC, TOPIC_ID, {2: plan(2, 1, (2,), (1, 2))})
        data = batch([b"a"])
        assert world.produce(data, index=8).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.produce(data, index=5).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.produce(data, index=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @behaviour("L27")
    def test_a_partition_in_an_offline_directory(self, world: OneLeader) -> None:
        world.broker.replicas.take_offline(world.partition(), "broken", world.now_ms)
        answer = world.produce(batch([b"a"]))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR

    def test_from_version_10_the_answer_says_who_leads_and_where(self, world: OneLeader) -> None:
        world.tell_metadata(1, TOPIC, TOPIC_ID, {5: plan(2, 3, (2,), (2,))}, [1, 2])
        body = produce_request(TOPIC, {5: batch([b"a"])})
        response = world.asking.call(ApiKey.PRODUCE, 10, body)
        assert tuple(produced(response).current_leader) == (2, 3)
        (node,) = response.node_endpoints
        assert (node.node_id, node.host, node.port) == (2, "broker2", 9092)
        assert world.asking.call(ApiKey.PRODUCE, 9, body).node_endpoints == []


class TestReplication:
    def test_under_min_insync_replicas_acks_all_is_refused_before_the_append(self) -> None:
        world = OneLeader()
        decision = {0: plan(1, 1, (1,), (1, 2))}
        world.tell_leader(1, TOPIC, TOPIC_ID, decision)
        overrides = {"min.insync.replicas": "2"}
        world.broker.topic_configs.apply(TOPIC, overrides, world.now_ms)
        assert world.produce(batch([b"a"])).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert world.log().log_end_offset == 0
        assert world.produce(batch([b"a"]), acks=1).error_code == ErrorCode.NONE

    def test_replicas_lost_between_append_and_acknowledgement_are_told(self) -> None:
        world = OneLeader()
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 1, (1, 2), (1, 2))})
        client = world.client(1)
        number = client.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: batch([b"a"])}))
        world.run(10)
        leader = world.partition().leader
        assert leader is not None
        leader.has_enough_replicas = False
        assert leader.note_follower_fetch(BrokerId(2), 1, world.now_ms)
        world.broker.replicas.note_watermark_moved(world.partition(), world.now_ms)
        world.run(10)
        answer = produced(client.answers[number])
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert answer.base_offset == 0

    @pytest.mark.parametrize(
        ("acks", "error"), [(-1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), (1, ErrorCode.NONE)]
    )
    def test_replicas_lost_between_append_and_write_are_told_to_who_asked_for_all(
        self, acks: int, error: ErrorCode
    ) -> None:
        """A batch sent again is behind the watermark already: nothing but the write is awaited."""
        world = OneLeader({"min.insync.replicas": "2"})
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 1, (1, 2), (1, 2))})
        data = batch([b"a"], producer_id=7, producer_epoch=0, base_sequence=0)
        assert world.produce(data, acks=1).error_code == ErrorCode.NONE
        leader = world.partition().leader
        assert leader is not None
        assert leader.note_follower_fetch(BrokerId(2), 1, world.now_ms)
        world.broker.replicas.note_watermark_moved(world.partition(), world.now_ms)
        client = world.client(1)
        number = client.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: data}, acks=acks))
        take_in = world.host.on_frame

        def take_in_and_shrink(connection: ConnectionId, frame: bytes) -> None:
            take_in(connection, frame)
            epoch = PartitionEpoch(leader.partition_epoch + 1)
            leader.note_isr_committed(leader.leader_epoch, epoch, (BrokerId(1),), world.now_ms)

        world.host.on_frame = take_in_and_shrink  # type: ignore[method-assign]
        world.run(10)
        answer = produced(client.answers[number])
        assert (answer.error_code, answer.base_offset) == (error, 0)


class TestBatches:
    def test_a_wrong_checksum(self, world: OneLeader) -> None:
        data = bytearray(batch([b"a"]))
        data[-1] ^= 1
        answer = world.produce(bytes(data))
        assert (answer.error_code, answer.log_start_offset) == (ErrorCode.CORRUPT_MESSAGE, -1)

    @pytest.mark.parametrize(
        "data",
        [
            None,
            b"",
            b"x",
            batch([b"a"]) + batch([b"b"]),
            with_field(batch([b"a"]), 0, ">q", 7),
            with_field(batch([b"a"]), 23, ">i", 4),
            with_field(batch([b"a"]), 57, ">i", 0),
            with_field(batch([b"a"]), 57, ">i", 9),
            with_field(batch([b"a"]), 21, ">h", 0x20),
            batch([b"a"], producer_id=5, producer_epoch=0, base_sequence=-1),
            build_message_set([Record(0, 1, b"k", b"v")], magic=1),
        ],
    )
    def test_what_is_no_proper_batch(self, world: OneLeader, data: bytes | None) -> None:
        answer = world.produce(data)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
        assert world.log().log_end_offset == 0

    def test_a_batch_that_is_too_large(self) -> None:
        world = OneLeader({"max.message.bytes": "200"})
        assert world.produce(batch([b"a" * 300])).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert world.produce(batch([b"a"])).error_code == ErrorCode.NONE

    def test_a_batch_that_is_larger_than_a_segment(self) -> None:
        world = OneLeader({"segment.bytes": "1000"})
        answer = world.produce(batch([b"a" * 2000]))
        assert answer.error_code == ErrorCode.RECORD_LIST_TOO_LARGE

    def test_a_compacted_topic_wants_keys(self) -> None:
        world = OneLeader({"cleanup.policy": "compact"})
        from barnabas.formats.batches.builder import build_batch

        data = build_batch([Record(0, 1, b"k", b"v"), Record(1, 1, None, b"v")])
        answer = world.produce(data)
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in answer.record_errors] == [1]

    def test_timestamps_out_of_bounds(self) -> None:
        world = OneLeader({"message.timestamp.after.max.ms": "1000"})
        answer = world.produce(batch([b"a"], timestamp=EPOCH_MS + 60_000))
        assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
        assert world.produce(batch([b"a"], timestamp=EPOCH_MS)).error_code == ErrorCode.NONE

    def test_the_brokers_time_is_stamped_and_told(self) -> None:
        world = OneLeader({"message.timestamp.type": "LogAppendTime"})
        answer = world.produce(batch([b"a"], timestamp=5))
        assert answer.log_append_time_ms >= EPOCH_MS
        records = world.fetch().records
        header = BatchHeader(records.to_bytes(), 0)  # type: ignore[union-attr]
        assert header.max_timestamp == answer.log_append_time_ms

    def test_another_codec_for_the_topic_is_applied(self) -> None:
        world = OneLeader({"compression.type": "gzip"})
        world.write(b"a" * 100)
        records = world.fetch().records
        header = BatchHeader(records.to_bytes(), 0)  # type: ignore[union-attr]
        assert header.compression_codec == CompressionCodec.GZIP
        assert values_of(world.fetch()) == [b"a" * 100]

    def test_zstd_needs_version_7(self, world: OneLeader) -> None:
        data = batch([b"a"], codec=CompressionCodec.ZSTD)
        answer = world.produce(data, version=6)
        assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert world.produce(data, version=7).error_code == ErrorCode.NONE


class TestOldProducers:
    @pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
    @pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
    def test_message_sets_are_written_as_one_batch(
        self, world: OneLeader, version: int, magic: int, codec: CompressionCodec
    ) -> None:
        records = [Record(n, 1000 + n, b"k", b"v%d" % n) for n in range(3)]
        data = build_message_set(records, magic=magic, codec=codec)
        answer = world.produce(data, version=version, acks=1)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
        assert world.log().log_end_offset == 3
        fetched = world.fetch()
        assert values_of(fetched) == [b"v0", b"v1", b"v2"]
        header = BatchHeader(fetched.records.to_bytes(), 0)  # type: ignore[union-attr]
        assert (header.magic, header.compression_codec) == (2, codec)

    def test_an_empty_set_appends_nothing_and_is_no_error(self, world: OneLeader) -> None:
        answer = world.produce(b"", version=2, acks=1)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, -1)

    def test_batches_of_today_are_taken_from_old_versions_too(self, world: OneLeader) -> None:
        assert world.produce(batch([b"a"]), version=1).error_code == ErrorCode.NONE


class TestIdempotence:
    def send(self, world: OneLeader, sequence: int, epoch: int = 0, count: int = 1) -> object:
        data = batch([b"v"] * count, producer_id=77, producer_epoch=epoch, base_sequence=sequence)
        answer = world.produce(data)
        return answer.error_code, answer.base_offset

    def test_a_repeated_batch_is_answered_with_its_first_offset(self, world: OneLeader) -> None:
        assert self.send(world, 0, count=3) == (0, 0)
        assert self.send(world, 3) == (0, 3)
        assert self.send(world, 0, count=3) == (0, 0)
        assert world.log().log_end_offset == 4

    def test_a_batch_repeated_within_one_turn_is_answered_twice(self, world: OneLeader) -> None:
        data = batch([b"v"], producer_id=77, producer_epoch=0, base_sequence=0)
        client = world.client(1)
        numbers = [
            client.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: data})) for _ in range(2)
        ]
        world.run(10)
        offsets = [produced(client.answers[number]).base_offset for number in numbers]
        assert offsets == [0, 0]
        assert world.log().log_end_offset == 1

    def test_a_gap_and_an_old_epoch_are_refused(self, world: OneLeader) -> None:
        self.send(world, 0)
        assert self.send(world, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert self.send(world, 0, epoch=1) == (0, 1)
        assert self.send(world, 1, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)

    def test_transactional_batches_are_refused_while_nobody_coordinates(
        self, world: OneLeader
    ) -> None:
        data = with_field(
            batch([b"a"], producer_id=5, producer_epoch=0, base_sequence=0), 21, ">h", 0x10
        )
        error = world.produce(data).error_code
        assert error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        error = world.produce(data, transactional_id="x").error_code
        assert error == ErrorCode.INVALID_TXN_STATE


class TestInternalTopics:
    def test_only_the_admin_client_writes_to_them(self, world: OneLeader) -> None:
        topic_id = TopicId(b"\x0c" * 16)
        decision = {0: plan(1, 0, (1,), (1,))}
        name = "__consumer_offsets"
        world.tell_metadata(1, name, topic_id, decision, [1])
        world.tell_leader(1, name, topic_id, decision, is_new=True)
        body = produce_request(name, {0: batch([b"a"])})
        answer = produced(world.asking.call(ApiKey.PRODUCE, 9, body))
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        answer = produced(world.asking.call(ApiKey.PRODUCE, 9, body, "__admin_client"))
        assert answer.error_code == ErrorCode.NONE


class TestFailingDisk:
    def test_a_write_that_fails_is_a_storage_error_for_all_of_the_turn(
        self, world: OneLeader
    ) -> None:
        def fail(file: object, parts: object) -> None:
            raise DiskLost("/logs/t-0", "broken")

        world.host.disk.append = fail  # type: ignore[method-assign]
        client = world.client(1)
        numbers = [
            client.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: batch([b"a"])}, acks=acks))
            for acks in (1, -1)
        ]
        world.run(10)
        errors = [produced(client.answers[number]).error_code for number in numbers]
        assert errors == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
        assert world.produce(batch([b"b"])).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        told = world.host.told.of(PartitionWentOffline)
        assert told[0].partition == (TOPIC, 0)

    def test_acks_0_learns_of_it_by_the_end_of_the_connection(self, world: OneLeader) -> None:
        def fail(file: object, parts: object) -> None:
            raise DiskLost("/logs/t-0", "broken")

        world.host.disk.append = fail  # type: ignore[method-assign]
        client = world.client(1)
        client.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: batch([b"a"])}, acks=0))
        world.run(10)
        assert client.closed_reason


def test_a_leader_that_the_cache_does_not_know_yet_is_unknown(world: OneLeader) -> None:
    """LeaderAndIsr comes before UpdateMetadata; in between producers are told to ask again."""
    world.broker.metadata_cache.apply(
        BrokerId(1),
        [],
        [],
        [(TOPIC, UpdateMetadataPartitionState(partition_index=0, leader=BrokerId(-2)))],  # type: ignore[list-item]
        world.now_ms,
    )
    answer = world.produce(batch([b"a"]))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
