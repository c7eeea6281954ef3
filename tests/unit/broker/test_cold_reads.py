"""A fetch of what only the device has: it waits for a job, and nobody waits for it."""

import pytest

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.fetch import PartitionData
from barnabas.model.error_codes import ErrorCode
from barnabas.storage.disk import FileId
from tests.worlds.memory_disk import Fault, MemoryDisk
from tests.worlds.one_broker import TOPIC, TOPIC_ID, OneLeader
from tests.worlds.requests import batch, fetch_request, values_of
from tests.worlds.virtual_world import Client, plan

VALUES = [b"%d-" % number * 3000 for number in range(40)]
"""Half of a megabyte in batches of their own, with index entries between them."""


class ColdLeader(OneLeader):
    """A broker that was started anew: nothing it wrote is in memory, and the disk is slow."""

    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        for value in VALUES:
            self.write(value)
        self.write(b"of another partition", index=1)
        self.host.stop()
        self.host.start()
        self.lead(1)
        self.disk.memory.forget()
        self.disk.is_slow = True

    @property
    def disk(self) -> MemoryDisk:
        return self.host.disk

    def begin(self, offset: int = 0, **how: int) -> tuple[Client, int]:
        """Send a fetch; who asks, and the number of the request."""
        client = self.client(1)
        body = fetch_request(TOPIC, {0: offset}, topic_id=TOPIC_ID, version=17, **how)
        return client, client.send(ApiKey.FETCH, 17, body)

    def finish(self, client: Client, number: int) -> PartitionData:
        self.disk.is_slow = False
        self.run_until(lambda: number in client.answers)
        (topic,) = client.answers[number].responses
        (answer,) = topic.partitions
        return answer

    @property
    def waited_for(self) -> list[str]:
        """Files of partition 0 that the loop has waited for."""
        return [path for path in self.disk.waited_for if f"/{TOPIC}-0/" in path]


def test_others_are_answered_while_a_cold_fetch_waits() -> None:
    world = ColdLeader()
    client, number = world.begin(max_wait_ms=100)
    world.run(5_000)
    assert number not in client.answers
    assert world.write(b"written meanwhile", index=1) == 1
    assert values_of(world.fetch(1, index=1)) == [b"written meanwhile"]
    answer = world.finish(client, number)
    assert values_of(answer) == VALUES
    assert world.waited_for == []
    assert world.disk.retained_count == 0


@pytest.mark.parametrize("max_bytes", [1, 20_000, 1 << 20])
@pytest.mark.parametrize("offset", [0, 17, 39])
def test_a_cold_fetch_from_anywhere_gets_what_a_warm_one_gets(offset: int, max_bytes: int) -> None:
    world = ColdLeader()
    client, number = world.begin(offset, partition_max_bytes=max_bytes)
    cold = values_of(world.finish(client, number))
    assert cold[0] == VALUES[offset]
    assert world.waited_for == []
    client, number = world.begin(offset, partition_max_bytes=max_bytes)
    world.disk.is_slow = True
    world.run(10)
    (topic,) = client.answers[number].responses
    assert values_of(topic.partitions[0]) == cold


def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    world = ColdLeader()
    client, _ = world.begin()
    world.run(10)
    assert world.disk.retained_count > 0
    client.close()
    world.run(10)
    world.disk.is_slow = False
    world.run(10)
    assert world.disk.retained_count == 0
    assert values_of(world.fetch(0)) == VALUES


def test_a_partition_whose_leader_changed_by_then_is_not_read() -> None:
    world = ColdLeader()
    client, number = world.begin(leader_epoch=1)
    world.run(10)
    decision = {0: plan(2, 2, (2,), (1, 2))}
    world.tell_metadata(1, TOPIC, TOPIC_ID, decision, [1, 2])
    world.tell_leader(1, TOPIC, TOPIC_ID, decision)
    answer = world.finish(client, number)
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert world.disk.retained_count == 0


def test_a_partition_that_is_released_by_then_is_told_so() -> None:
    world = ColdLeader()
    client, number = world.begin()
    world.run(10)
    partition = world.partition()
    world.broker.replicas.release(partition)
    partition.forget_role()
    answer = world.finish(client, number)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.disk.retained_count == 0


def test_a_directory_that_is_lost_by_then_is_told_as_a_storage_error() -> None:
    world = ColdLeader()
    client, number = world.begin()
    world.run(10)
    world.disk.plan(world.disk.operations, Fault.FAIL)
    lost = world.produce(batch([b"x"]), index=1)
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    world.run(10)
    answer = world.finish(client, number)
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_what_leaves_memory_at_once_is_waited_for_in_the_end() -> None:
    world = ColdLeader()
    world.disk.is_slow = False
    client, number = world.begin()
    rounds = 0

    def forget() -> bool:
        nonlocal rounds
        rounds += 1
        world.disk.memory.forget()
        return number in client.answers

    while not forget():
        world.run(1)
        assert rounds < 100
    (topic,) = client.answers[number].responses
    assert values_of(topic.partitions[0]) == VALUES


def test_the_end_of_a_log_is_read_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    world = OneLeader()

    def refuse(file: FileId, position: int, size_bytes: int) -> bytes | None:
        raise AssertionError("asked whether it is in memory")

    monkeypatch.setattr(world.host.disk, "read_cached", refuse)
    for value in VALUES[:5]:
        offset = world.write(value)
        assert values_of(world.fetch(offset)) == [value]
