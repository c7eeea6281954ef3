"""ListOffsets and OffsetForLeaderEpoch: offsets by time, at the ends, at the end of an epoch."""

import pytest

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.formats.wire.generated.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from tests.behaviours import behaviour
from tests.worlds.one_broker import TOPIC, TOPIC_ID, OneLeader
from tests.worlds.requests import batch
from tests.worlds.virtual_world import EPOCH_MS, plan

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


@pytest.fixture
def world() -> OneLeader:
    return OneLeader()


def ask(
    world: OneLeader,
    timestamp: int,
    *,
    version: int = 9,
    index: int = 0,
    replica_id: int = -1,
    leader_epoch: int = -1,
    isolation_level: int = 0,
    times: int = 1,
    max_num_offsets: int = 10,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(
        partition_index=index, current_leader_epoch=leader_epoch, timestamp=timestamp
    )
    if version == 0:
        asked.max_num_offsets = max_num_offsets
    body = ListOffsetsRequest(
        replica_id=BrokerId(replica_id),
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked] * times)],
    )
    if version >= 2:
        body.isolation_level = isolation_level
    (topic,) = world.asking.call(ApiKey.LIST_OFFSETS, version, body).topics
    assert len(topic.partitions) == times
    return topic.partitions[0]


def told(answer: ListOffsetsPartitionResponse) -> tuple[int, int, int, int]:
    return answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch


def write_at(world: OneLeader, *timestamps: int) -> None:
    for timestamp in timestamps:
        assert world.produce(batch([b"v"], timestamp=timestamp)).error_code == 0


@pytest.mark.parametrize("version", range(1, 10))
def test_the_ends_of_a_partition(world: OneLeader, version: int) -> None:
    world.write(b"a", b"b", b"c")
    world.log().delete_records_before(1)
    epoch = 0 if version >= 4 else -1
    assert told(ask(world, EARLIEST, version=version)) == (0, 1, -1, epoch)
    assert told(ask(world, LATEST, version=version)) == (0, 3, -1, epoch)


@pytest.mark.parametrize("version", range(1, 10))
def test_the_first_record_as_young(world: OneLeader, version: int) -> None:
    write_at(world, 1000, 3000, 2000)
    assert ask(world, 1001, version=version).offset == 1
    assert ask(world, 1000, version=version).timestamp == 1000
    assert told(ask(world, 3001, version=version)) == (0, -1, -1, -1)


def test_the_youngest_record(world: OneLeader) -> None:
    write_at(world, 1000, 3000, 2000)
    assert told(ask(world, MAX_TIMESTAMP)) == (0, 1, 3000, 0)
    assert told(ask(world, MAX_TIMESTAMP, index=1)) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (-6, 100)],
)
def test_names_of_offsets_came_with_versions(
    world: OneLeader, timestamp: int, first_version: int
) -> None:
    for version in range(1, 10):
        expected = ErrorCode.NONE if version >= first_version else ErrorCode.UNSUPPORTED_VERSION
        assert ask(world, timestamp, version=version).error_code == expected


def test_nothing_is_in_tiered_storage(world: OneLeader) -> None:
    world.write(b"a")
    assert told(ask(world, EARLIEST_LOCAL)) == (0, 0, -1, 0)
    assert told(ask(world, LATEST_TIERED)) == (0, -1, -1, -1)


class TestWhoAsks:
    def behind(self) -> OneLeader:
        """Two replicas; three records of which the follower has acknowledged two."""
        world = OneLeader()
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 1, (1, 2), (1, 2))})
        for value in (b"a", b"b", b"c"):
            world.produce(batch([value], timestamp=EPOCH_MS), acks=1)
        world.fetch(2, replica_id=2, leader_epoch=1)
        assert world.log().high_watermark == 2
        return world

    def test_a_consumer_sees_the_watermark_and_a_follower_the_end(self) -> None:
        world = self.behind()
        assert ask(world, LATEST).offset == 2
        assert ask(world, LATEST, isolation_level=1).offset == 2
        assert ask(world, LATEST, replica_id=2).offset == 3

    def test_records_above_the_watermark_are_not_found_by_time(self) -> None:
        world = self.behind()
        world.produce(batch([b"d"], timestamp=EPOCH_MS + 500), acks=1)
        assert ask(world, EPOCH_MS + 1).offset == -1
        assert ask(world, EPOCH_MS + 1, replica_id=2).offset == 3

    @pytest.mark.parametrize(
        ("version", "error"),
        [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)],
    )
    def test_a_leader_whose_watermark_is_behind_its_epoch_does_not_tell_an_end(
        self, version: int, error: ErrorCode
    ) -> None:
        world = self.behind()
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 2, (1, 2), (1, 2))})
        assert ask(world, LATEST, version=version).error_code == error
        assert ask(world, EPOCH_MS + 9999, version=version).error_code == error
        assert ask(world, EARLIEST, version=version).error_code == ErrorCode.NONE
        assert ask(world, LATEST, version=version, replica_id=2).offset == 3

    @behaviour("L27")
    def test_unknown_hosted_and_led_elsewhere(self, world: OneLeader) -> None:
        world.tell_metadata(1, TOPIC, TOPIC_ID, {5: plan(2, 3, (2,), (2,))}, [1, 2])
        world.tell_leader(1, TOPIC, TOPIC_ID, {2: plan(2, 1, (2,), (1, 2))})
        not_here = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert ask(world, LATEST, index=8).error_code == not_here
        assert ask(world, LATEST, index=5).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert ask(world, LATEST, index=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert ask(world, LATEST, index=2, replica_id=-2).error_code == ErrorCode.NONE
        world.broker.replicas.take_offline(world.partition(1), "broken", world.now_ms)
        assert ask(world, LATEST, index=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    def test_epochs_are_fenced(self, world: OneLeader) -> None:
        world.lead(3)
        assert ask(world, LATEST, leader_epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert ask(world, LATEST, leader_epoch=4).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert told(ask(world, LATEST, leader_epoch=3)) == (0, 0, -1, 3)

    def test_a_partition_asked_for_twice_is_refused(self, world: OneLeader) -> None:
        assert ask(world, LATEST, times=2).error_code == ErrorCode.INVALID_REQUEST


class TestVersion0:
    def test_segment_starts_latest_first(self) -> None:
        world = OneLeader({"segment.bytes": "200"})
        for _ in range(3):
            world.write(b"v" * 100)
            world.run(1000)
        assert ask(world, LATEST, version=0).old_style_offsets == [3, 2, 1, 0]
        assert ask(world, LATEST, version=0, max_num_offsets=2).old_style_offsets == [3, 2]
        assert ask(world, EARLIEST, version=0).old_style_offsets == [0]

    def test_segments_changed_after_the_time_are_left_out(self) -> None:
        world = OneLeader({"segment.bytes": "200"})
        world.write(b"v" * 100)
        between_ms = EPOCH_MS + world.now_ms + 10
        world.run(1000)
        world.write(b"v" * 100)
        assert ask(world, between_ms, version=0).old_style_offsets == [0]
        assert ask(world, 5, version=0).old_style_offsets == []

    def test_a_consumer_gets_nothing_above_the_watermark(self) -> None:
        world = OneLeader()
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 1, (1, 2), (1, 2))})
        world.produce(batch([b"a", b"b"]), acks=1)
        assert ask(world, LATEST, version=0).old_style_offsets == [0, 0]
        assert ask(world, LATEST, version=0, replica_id=2).old_style_offsets == [2, 0]

    def test_newer_names_are_unknown(self, world: OneLeader) -> None:
        answer = ask(world, MAX_TIMESTAMP, version=0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


class TestOffsetForLeaderEpoch:
    def ask(
        self, world: OneLeader, epoch: int, *, version: int = 4, index: int = 0, current: int = -1
    ) -> tuple[int, int, int]:
        body = OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic=TOPIC,
                    partitions=[
                        OffsetForLeaderPartition(
                            partition=index, current_leader_epoch=current, leader_epoch=epoch
                        )
                    ],
                )
            ]
        )
        (topic,) = world.asking.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, body).topics
        answer: EpochEndOffset = topic.partitions[0]
        return answer.error_code, answer.leader_epoch, answer.end_offset

    @pytest.mark.parametrize("version", range(5))
    def test_where_each_epoch_ends(self, world: OneLeader, version: int) -> None:
        world.write(b"a", b"b")
        world.lead(4)
        world.write(b"c")
        shown = (lambda epoch: epoch) if version >= 1 else (lambda epoch: -1)
        assert self.ask(world, 0, version=version) == (0, shown(0), 2)
        assert self.ask(world, 3, version=version) == (0, shown(0), 2)
        assert self.ask(world, 4, version=version) == (0, shown(4), 3)
        assert self.ask(world, 5, version=version) == (0, -1, -1)

    def test_only_the_leader_answers_and_only_in_its_epoch(self, world: OneLeader) -> None:
        world.lead(3)
        assert self.ask(world, 3, current=2)[0] == ErrorCode.FENCED_LEADER_EPOCH
        assert self.ask(world, 3, current=4)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert self.ask(world, 3, current=3) == (0, 3, 0)
        world.tell_metadata(1, TOPIC, TOPIC_ID, {0: plan(2, 4, (2,), (1, 2))}, [1, 2])
        world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(2, 4, (2,), (1, 2))})
        assert self.ask(world, 3)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert self.ask(world, 3, index=9)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        world.broker.replicas.take_offline(world.partition(1), "broken", world.now_ms)
        assert self.ask(world, 3, index=1)[0] == ErrorCode.KAFKA_STORAGE_ERROR
