"""Fetch: limits, waiting, fences, sessions over the wire, old and new clients."""

import struct

import pytest

from barnabas.broker.connections import Connection
from barnabas.broker.event_stream import RequestFailed
from barnabas.broker.ports import ConnectionId
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.old_magic import messages_in, read_message_set
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.fetch import (
    FetchPartition,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskLost
from barnabas.model.ids import BrokerId, TopicId
from barnabas.model.invariant import InvariantViolated
from tests.behaviours import behaviour
from tests.worlds.one_broker import TOPIC, TOPIC_ID, OneLeader
from tests.worlds.requests import batch, fetch_request, produce_request, values_of
from tests.worlds.virtual_world import EPOCH_MS, Client, plan


@pytest.fixture
def world() -> OneLeader:
    return OneLeader()


def size_of(data: PartitionData) -> int:
    return 0 if data.records is None else len(data.records.to_bytes())  # type: ignore[union-attr]


def wait(world: OneLeader, client: Client, offset: int, **how: int) -> int:
    body = fetch_request(TOPIC, {0: offset}, topic_id=TOPIC_ID, **{"max_wait_ms": 10_000, **how})
    number = client.send(ApiKey.FETCH, 17, body)
    world.run(10)
    return number


@pytest.mark.parametrize("version", range(4, 18))
def test_every_version_of_batches_reads_records_and_watermark(
    world: OneLeader, version: int
) -> None:
    world.write(b"a", b"b")
    answer = world.fetch(version=version)
    assert values_of(answer) == [b"a", b"b"]
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 2, 2)
    assert answer.aborted_transactions is None


def test_a_fetch_begins_with_the_batch_that_holds_the_offset(world: OneLeader) -> None:
    world.write(b"a", b"b")
    world.write(b"c")
    assert values_of(world.fetch(1)) == [b"a", b"b", b"c"]
    assert values_of(world.fetch(2)) == [b"c"]
    assert values_of(world.fetch(3)) == []


def test_offsets_outside_the_log_are_out_of_range(world: OneLeader) -> None:
    world.write(b"a", b"b", b"c")
    assert world.fetch(4).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert world.log().delete_records_before(2) == ErrorCode.NONE
    answer = world.fetch(1)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (
        -1,
        -1,
        -1,
    )


def test_large_reads_are_slices_of_the_file_and_give_it_back(world: OneLeader) -> None:
    value = b"v" * 100_000
    world.write(value)
    before = world.host.disk.open_count
    assert values_of(world.fetch()) == [value]
    assert world.host.disk.open_count == before


class TestLimits:
    def test_the_first_batch_above_the_limits_is_still_returned(self, world: OneLeader) -> None:
        world.write(b"a" * 500)
        world.write(b"b")
        assert values_of(world.fetch(partition_max_bytes=1)) == [b"a" * 500]
        assert values_of(world.fetch(max_bytes=1, version=3 + 1)) == [b"a" * 500]

    def test_only_the_first_partition_may_exceed_the_limit_of_the_answer(
        self, world: OneLeader
    ) -> None:
        world.write(b"a" * 500, index=0)
        world.write(b"b" * 500, index=1)
        (topic,) = world.fetch_all({0: 0, 1: 0}, max_bytes=100).responses
        assert [size_of(one) > 0 for one in topic.partitions] == [True, False]

    def test_what_the_first_ones_took_is_missing_for_the_others(self, world: OneLeader) -> None:
        for index in range(3):
            world.write(b"a" * 400, index=index)
        (topic,) = world.fetch_all({0: 0, 1: 0, 2: 0}, max_bytes=1000).responses
        assert [values_of(one) for one in topic.partitions] == [[b"a" * 400]] * 2 + [[]]

    def test_the_broker_has_a_limit_of_its_own(self) -> None:
        world = OneLeader(fetch_max_bytes="1024")
        world.write(b"a" * 900, index=0)
        world.write(b"b" * 900, index=1)
        (topic,) = world.fetch_all({0: 0, 1: 0}).responses
        assert [size_of(one) > 0 for one in topic.partitions] == [True, False]


class TestWaiting:
    def test_it_is_answered_as_soon_as_there_is_something(self, world: OneLeader) -> None:
        client = world.client(1)
        number = wait(world, client, 0)
        assert number not in client.answers
        world.write(b"a")
        world.run(2)
        assert values_of(client.answers[number].responses[0].partitions[0]) == [b"a"]

    def test_it_is_answered_with_nothing_when_its_time_is_over(self, world: OneLeader) -> None:
        client = world.client(1)
        started_ms = world.now_ms
        number = wait(world, client, 0, max_wait_ms=700)
        world.run(600)
        assert number not in client.answers
        world.run(200)
        assert client.answered_ms[number] - started_ms == 702
        assert size_of(client.answers[number].responses[0].partitions[0]) == 0

    def test_it_waits_for_min_bytes(self, world: OneLeader) -> None:
        client = world.client(1)
        number = wait(world, client, 0, min_bytes=400)
        for _ in range(4):
            assert number not in client.answers
            world.write(b"v" * 60)
            world.run(2)
        assert len(values_of(client.answers[number].responses[0].partitions[0])) >= 3

    def test_an_error_is_not_waited_with(self, world: OneLeader) -> None:
        client = world.client(1)
        number = wait(world, client, 99)
        error = client.answers[number].responses[0].partitions[0].error_code
        assert error == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_partitions_that_nobody_knows_are_answered_at_once_when_they_are_alone(
        self, world: OneLeader
    ) -> None:
        client = world.client(1)
        body = fetch_request("nosuch", {0: 0}, max_wait_ms=10_000, version=12)
        answer = client.call(ApiKey.FETCH, 12, body)
        error = answer.responses[0].partitions[0].error_code
        assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.now_ms < 1000

    def test_a_closed_connection_leaves_nothing_behind(self, world: OneLeader) -> None:
        client = world.client(1)
        wait(world, client, 0)
        purgatory = world.broker.replicas.purgatory
        assert purgatory.parked_fetch_count == 1
        client.close()
        world.run(5)
        assert purgatory.parked_fetch_count == 0
        assert world.partition().room.is_empty()

    def test_it_is_answered_when_the_partition_goes_offline(self, world: OneLeader) -> None:
        client = world.client(1)
        number = wait(world, client, 0)
        world.broker.replicas.take_offline(world.partition(), "broken", world.now_ms)
        world.write(b"x", index=1)
        world.run(5)
        error = client.answers[number].responses[0].partitions[0].error_code
        assert error == ErrorCode.KAFKA_STORAGE_ERROR

    def test_a_bug_met_while_waiting_ends_its_connection_and_no_other(
        self, world: OneLeader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = world.client(1)
        wait(world, client, 0)

        def bug(*_: object) -> None:
            raise InvariantViolated("a bug")

        with monkeypatch.context() as patched:
            patched.setattr(world.host.disk, "read", bug)
            world.write(b"a")
            world.run(5)
        assert client.closed_reason
        (failed,) = world.host.told.of(RequestFailed)
        assert failed.story == "a bug"
        assert values_of(world.fetch()) == [b"a"]

    def test_advances_of_other_partitions_do_not_touch_it(self, world: OneLeader) -> None:
        class Waiting:
            connection = Connection(ConnectionId(99), "PLAINTEXT", "client", world.broker.transport)
            looked_at = 0

            def try_complete(self, now_ms: int) -> bool:
                self.looked_at += 1
                return False

            def expire(self, now_ms: int) -> None:
                pass

        fetch = Waiting()
        room = world.partition(0).room.at_high_watermark
        world.broker.replicas.purgatory.park_fetch(fetch, [room], world.now_ms + 10_000)
        world.write(b"x", index=1)
        assert fetch.looked_at == 0
        world.write(b"x", index=0)
        assert fetch.looked_at == 1


class TestFences:
    @pytest.mark.parametrize(
        ("asked", "error"),
        [
            (2, ErrorCode.FENCED_LEADER_EPOCH),
            (3, ErrorCode.NONE),
            (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (-1, ErrorCode.NONE),
        ],
    )
    def test_leader_epochs(self, world: OneLeader, asked: int, error: ErrorCode) -> None:
        world.lead(3)
        assert world.fetch(leader_epoch=asked).error_code == error

    @behaviour("L27")
    def test_unknown_hosted_and_led_elsewhere(self, world: OneLeader) -> None:
        world.tell_metadata(1, TOPIC, TOPIC_ID, {5: plan(2, 3, (2,), (2,))}, [1, 2])
        world.tell_leader(1, TOPIC, TOPIC_ID, {2: plan(2, 1, (2,), (1, 2))})
        fetch = {"version": 10}
        assert world.fetch(index=8).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.fetch(index=5).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.fetch(index=2, **fetch).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_from_version_11_on_a_follower_may_be_read(self, world: OneLeader) -> None:
        world.write(b"a")
        world.tell_metadata(1, TOPIC, TOPIC_ID, {0: plan(2, 1, (2,), (1, 2))}, [1, 2])
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(2, 1, (2,), (1, 2))})
        assert world.fetch(version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert values_of(world.fetch(version=11)) == [b"a"]

    def test_topic_ids_that_nobody_knows_or_that_are_not_the_logs(self, world: OneLeader) -> None:
        other = TopicId(b"\x77" * 16)
        body = fetch_request(TOPIC, {0: 0}, topic_id=other)
        (topic,) = world.asking.call(ApiKey.FETCH, 17, body).responses
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        world.tell_metadata(1, TOPIC, other, {0: plan(1, 0, (1,), (1,))}, [1])
        (topic,) = world.asking.call(ApiKey.FETCH, 17, body).responses
        assert topic.partitions[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    def test_from_version_16_on_the_answer_says_who_leads(self, world: OneLeader) -> None:
        world.tell_metadata(1, TOPIC, TOPIC_ID, {5: plan(2, 3, (2,), (2,))}, [1, 2])
        response = world.fetch_all({5: 0})
        assert tuple(response.responses[0].partitions[0].current_leader) == (2, 3)
        assert [(n.node_id, n.port) for n in response.node_endpoints] == [(2, 9092)]
        response = world.fetch_all({5: 0}, version=15)
        assert tuple(response.responses[0].partitions[0].current_leader) == (-1, -1)

    def test_a_disk_that_refuses_to_be_read_takes_the_partition_offline(
        self, world: OneLeader
    ) -> None:
        world.write(b"a")

        def fail(*_: object) -> bytes:
            raise DiskLost("/logs/t-0", "broken")

        world.host.disk.read = fail  # type: ignore[method-assign]
        assert world.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.fetch(version=5).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.partition().is_offline


class TestFollowers:
    def replicated(self) -> OneLeader:
        world = OneLeader()
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 1, (1, 2), (1, 2))})
        return world

    @behaviour("F6")
    def test_a_fetch_with_a_replica_id_acknowledges_what_is_below_its_offset(self) -> None:
        world = self.replicated()
        assert world.produce(batch([b"a", b"b"]), acks=1).error_code == 0
        seen = world.fetch(0, replica_id=2, leader_epoch=1)
        assert (seen.high_watermark, values_of(seen)) == (0, [b"a", b"b"])
        seen = world.fetch(2, replica_id=2, leader_epoch=1)
        assert seen.high_watermark == 0
        assert world.log().high_watermark == 2
        assert world.fetch(2, replica_id=2, leader_epoch=1).high_watermark == 2

    def test_before_version_15_the_replica_id_stands_elsewhere(self) -> None:
        world = self.replicated()
        world.produce(batch([b"a"]), acks=1)
        world.fetch(1, replica_id=2, leader_epoch=1, version=12)
        assert world.log().high_watermark == 1

    def test_a_stranger_is_told_that_the_leader_does_not_know_it(self) -> None:
        world = self.replicated()
        answer = world.fetch(0, replica_id=9, leader_epoch=1)
        assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        answer = world.fetch(0, replica_id=9, version=8)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @behaviour("F19")
    def test_a_diverging_epoch_is_answered_instead_of_records_and_acknowledges_nothing(
        self,
    ) -> None:
        world = self.replicated()
        world.produce(batch([b"a", b"b"]), acks=1)
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 4, (1, 2), (1, 2))})
        world.produce(batch([b"c"]), acks=1)
        answer = world.fetch(3, replica_id=2, leader_epoch=4, last_fetched_epoch=3)
        assert tuple(answer.diverging_epoch) == (1, 2)
        assert size_of(answer) == 0
        assert world.log().high_watermark == 0
        answer = world.fetch(2, replica_id=2, leader_epoch=4, last_fetched_epoch=1)
        assert tuple(answer.diverging_epoch) == (-1, -1)
        assert values_of(answer) == [b"c"]

    def test_an_epoch_that_cannot_be_compared_is_out_of_range(self) -> None:
        world = self.replicated()
        answer = world.fetch(0, replica_id=2, leader_epoch=1, last_fetched_epoch=7)
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_a_follower_reads_above_the_watermark_and_a_consumer_does_not(self) -> None:
        world = self.replicated()
        world.produce(batch([b"a"]), acks=1)
        assert values_of(world.fetch(0)) == []
        assert values_of(world.fetch(0, replica_id=2, leader_epoch=1)) == [b"a"]

    def test_a_fetch_that_waits_acknowledges_when_it_comes_not_when_it_is_answered(self) -> None:
        world = self.replicated()
        client = world.client(1)
        wait(world, client, 0, replica_id=2, leader_epoch=1)
        producer = world.client(1)
        number = producer.send(ApiKey.PRODUCE, 9, produce_request(TOPIC, {0: batch([b"a"])}))
        world.run(20)
        assert number not in producer.answers
        wait(world, client, 1, replica_id=2, leader_epoch=1)
        assert number in producer.answers


class TestSessions:
    def test_a_session_over_the_wire(self, world: OneLeader) -> None:
        full: FetchResponse = world.fetch_all({0: 0, 1: 0}, session_epoch=0)
        assert full.session_id > 0
        assert len(full.responses[0].partitions) == 2
        again = world.fetch_all({}, session_id=full.session_id, session_epoch=1)
        assert (again.error_code, again.responses) == (0, [])
        world.write(b"a", index=1)
        news = world.fetch_all({}, session_id=full.session_id, session_epoch=2)
        (topic,) = news.responses
        assert [(p.partition_index, values_of(p)) for p in topic.partitions] == [(1, [b"a"])]
        changed = world.fetch_all({1: 1}, session_id=full.session_id, session_epoch=3)
        assert changed.responses == []

    def test_forgetting_everything_ends_the_session(self, world: OneLeader) -> None:
        session_id = world.fetch_all({0: 0}, session_epoch=0).session_id
        body = fetch_request(TOPIC, {}, session_id=session_id, session_epoch=1)
        body.forgotten_topics_data = [ForgottenTopic(topic_id=TOPIC_ID, partitions=[0])]
        answer = world.asking.call(ApiKey.FETCH, 17, body)
        assert (answer.error_code, answer.session_id) == (0, 0)
        gone = world.fetch_all({}, session_id=session_id, session_epoch=2)
        assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_refusals_stand_at_the_top(self, world: OneLeader) -> None:
        session_id = world.fetch_all({0: 0}, session_epoch=0).session_id
        wrong = world.fetch_all({}, session_id=session_id, session_epoch=9)
        assert (wrong.error_code, wrong.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])
        named = world.fetch_all({}, session_id=session_id, session_epoch=1, version=12)
        assert named.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    def test_a_topic_that_becomes_known_is_found_by_its_id(self, world: OneLeader) -> None:
        other = TopicId(b"\x0d" * 16)
        body = fetch_request("u", {0: 0}, topic_id=other, session_epoch=0)
        first = world.asking.call(ApiKey.FETCH, 17, body)
        assert first.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        decision = {0: plan(1, 0, (1,), (1,))}
        world.tell_metadata(1, "u", other, decision, [1])
        world.tell_leader(1, "u", other, decision, is_new=True)
        body = fetch_request("u", {}, session_id=first.session_id, session_epoch=1)
        second = world.asking.call(ApiKey.FETCH, 17, body)
        assert second.responses[0].partitions[0].error_code == ErrorCode.NONE

    def test_a_request_that_overtakes_a_waiting_one_ends_it_with_an_error(
        self, world: OneLeader
    ) -> None:
        session_id = world.fetch_all({0: 0}, session_epoch=0).session_id
        slow, fast = world.client(1), world.client(1)
        body = fetch_request(TOPIC, {}, session_id=session_id, session_epoch=1, max_wait_ms=9000)
        waiting = slow.send(ApiKey.FETCH, 17, body)
        world.run(5)
        body = fetch_request(TOPIC, {}, session_id=session_id, session_epoch=2)
        assert fast.call(ApiKey.FETCH, 17, body).error_code == 0
        world.write(b"v" * 50_000)
        world.run(5)
        assert slow.answers[waiting].error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert slow.answers[waiting].responses == []

    def test_a_partition_named_twice_counts_once(self, world: OneLeader) -> None:
        world.write(b"a")
        body = fetch_request(TOPIC, {0: 0}, topic_id=TOPIC_ID)
        body.topics.append(
            FetchTopic(
                topic_id=TOPIC_ID,
                partitions=[FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=9)],
            )
        )
        (topic,) = world.asking.call(ApiKey.FETCH, 17, body).responses
        assert [values_of(one) for one in topic.partitions] == [[]]


class TestOldConsumers:
    @pytest.mark.parametrize("version", range(4))
    @pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
    def test_records_are_converted_to_what_they_can_read(
        self, world: OneLeader, version: int, codec: CompressionCodec
    ) -> None:
        world.produce(batch([b"a", b"b"], codec=codec, timestamp=EPOCH_MS))
        answer = world.fetch(version=version)
        data = answer.records.to_bytes()  # type: ignore[union-attr]
        records = read_message_set(data, 0, len(data))
        assert [record.value for record in records] == [b"a", b"b"]
        assert data[16] == (1 if version >= 2 else 0)
        assert {record.timestamp for record in records} == {EPOCH_MS if version >= 2 else -1}

    def test_uncompressed_messages_before_the_offset_are_left_out(self, world: OneLeader) -> None:
        world.write(b"a", b"b", b"c")
        data = world.fetch(1, version=3).records.to_bytes()  # type: ignore[union-attr]
        assert [r.value for r in read_message_set(data, 0, len(data))] == [b"b", b"c"]

    def test_conversion_can_be_forbidden(self) -> None:
        world = OneLeader({"message.downconversion.enable": "false"})
        world.write(b"a")
        assert world.fetch(version=3).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert values_of(world.fetch(version=4)) == [b"a"]

    def test_zstd_cannot_be_read_by_old_consumers(self, world: OneLeader) -> None:
        world.produce(batch([b"a"], codec=CompressionCodec.ZSTD))
        answer = world.fetch(version=3)
        assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert values_of(world.fetch(version=4)) == [b"a"]

    @pytest.mark.parametrize(("version", "error"), [(9, 76), (10, 0)])
    def test_a_topic_kept_in_zstd_needs_version_10(self, version: int, error: int) -> None:
        world = OneLeader({"compression.type": "zstd"})
        world.write(b"a")
        assert world.fetch(version=version).error_code == error

    def test_a_batch_beyond_the_buffer_of_version_2_makes_the_consumer_complain(
        self, world: OneLeader
    ) -> None:
        world.write(b"a" * 500)
        data = world.fetch(version=2, partition_max_bytes=100).records.to_bytes()  # type: ignore[union-attr]
        offset, size = struct.unpack_from(">qi", data)
        assert offset == -1
        assert size > len(data)
        assert size_of(world.fetch(1, version=2)) == 0

    @pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
    def test_a_large_batch_is_converted_in_pieces_until_all_of_it_was_read(
        self, world: OneLeader, codec: CompressionCodec
    ) -> None:
        values = [b"%d" % number for number in range(25_000)]
        assert world.produce(batch(values, codec=codec)).error_code == ErrorCode.NONE
        world.write(b"last")
        read: list[bytes | None] = []
        sizes: list[int] = []
        while len(read) < 25_001:
            data = world.fetch(len(read), version=3).records.to_bytes()  # type: ignore[union-attr]
            records = [r for r in read_message_set(data, 0, len(data)) if r.offset >= len(read)]
            assert [record.offset for record in records][:1] == [len(read)]
            read += [record.value for record in records]
            sizes.append(len(records))
        assert read == [*values, b"last"]
        assert sizes == [10_000, 10_000, 5_001]

    def test_one_answer_converts_a_mebibyte_of_all_partitions_together(
        self, world: OneLeader
    ) -> None:
        for index in range(3):
            for _ in range(4):
                world.produce(batch([b"v" * 400_000]), index=index)
        received: dict[int, int] = dict.fromkeys(range(3), 0)
        for _ in range(40):
            offsets = {n: offset for n, offset in received.items() if offset < 4}
            if not offsets:
                break
            (topic,) = world.fetch_all(offsets, version=3).responses
            brought = 0
            for answer in topic.partitions:
                data = answer.records.to_bytes()
                brought += len(data)
                assert not data.startswith(b"\xff" * 8)
                received[answer.partition_index] += len(list(messages_in(data, 0, len(data))))
            assert 0 < brought < 3 * 400_000 + 1000
        assert received == {0: 4, 1: 4, 2: 4}

    def test_a_record_larger_than_all_that_is_converted_is_sent_whole(
        self, world: OneLeader
    ) -> None:
        world.produce(batch([b"v" * 3_000_000, b"w"], codec=CompressionCodec.GZIP))
        data = world.fetch(0, version=3).records.to_bytes()  # type: ignore[union-attr]
        assert [r.value for r in read_message_set(data, 0, len(data))] == [b"v" * 3_000_000]
        data = world.fetch(1, version=3).records.to_bytes()  # type: ignore[union-attr]
        assert [r.value for r in read_message_set(data, 0, len(data))] == [b"w"]


class TestIsolation:
    def test_read_committed_names_aborted_transactions_even_when_there_are_none(
        self, world: OneLeader
    ) -> None:
        world.write(b"a")
        answer = world.fetch(isolation_level=1)
        assert (values_of(answer), answer.aborted_transactions) == ([b"a"], [])


def test_a_leader_is_asked_for_its_own_epoch_end(world: OneLeader) -> None:
    world.write(b"a")
    world.lead(2)
    world.write(b"b")
    assert world.partition().end_offset_for_epoch(0) == (0, 1)
    assert world.partition().end_offset_for_epoch(2) == (2, 2)
    assert world.partition().leader_id == BrokerId(1)
