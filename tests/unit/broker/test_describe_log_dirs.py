"""DescribeLogDirs: what lies where, how far it lags, and how much room there is."""

from typing import Any

import pytest

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskLost
from tests.worlds.one_broker import TOPIC, OneLeader

DIRECTORIES = ["/logs", "/more"]


@pytest.fixture
def world() -> OneLeader:
    """Three partitions in two directories, the first with a record."""
    world = OneLeader(**{"log.dirs": ",".join(DIRECTORIES)})
    world.write(b"v")
    return world


def ask(world: OneLeader, asked: dict[str, list[int]] | None = None, version: int = 4) -> Any:
    topics = None
    if asked is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=asked[name]) for name in asked]
    body = DescribeLogDirsRequest(topics=topics)
    answer = world.asking.call(ApiKey.DESCRIBE_LOG_DIRS, version, body)
    assert answer.error_code == ErrorCode.NONE
    assert [one.log_dir for one in answer.results] == DIRECTORIES
    return answer.results


def partitions(results: Any) -> dict[int, tuple[str, int, int, bool]]:
    return {
        one.partition_index: (
            result.log_dir, one.partition_size, one.offset_lag, one.is_future_key
        )
        for result in results
        for topic in result.topics
        for one in topic.partitions
    }  # fmt: skip


@pytest.mark.parametrize("version", range(5))
def test_every_replica_is_where_its_log_is(world: OneLeader, version: int) -> None:
    results = ask(world, version=version)
    assert [topic.name for result in results for topic in result.topics] == [TOPIC, TOPIC]
    found = partitions(results)
    assert sorted(found) == [0, 1, 2]
    for index, (path, size_bytes, lag, is_future) in found.items():
        log = world.log(index)
        assert (path, size_bytes, lag, is_future) == (log.log_directory, log.size_bytes, 0, False)
    assert found[0][1] > found[1][1] == 0


def test_the_room_is_told_from_version_4_on(world: OneLeader) -> None:
    assert [(one.total_bytes, one.usable_bytes) for one in ask(world, version=3)] == [(-1, -1)] * 2
    disk = world.host.disk
    room = (disk.total_bytes("/logs"), disk.free_bytes("/logs"))
    assert [(one.total_bytes, one.usable_bytes) for one in ask(world)] == [room] * 2


def test_only_what_was_asked_for_and_nothing_of_what_is_not_here(world: OneLeader) -> None:
    assert sorted(partitions(ask(world, {TOPIC: [0, 0, 7], "nosuch": [0]}))) == [0]
    assert [one.topics for one in ask(world, {})] == [[], []]


def test_the_lag_of_a_log_without_a_role_is_not_known(
    world: OneLeader,
) -> None:
    world.host.kill()
    world.run(20_000)
    world.host.start()
    world._client = None
    assert {lag for _, _, lag, _ in partitions(ask(world)).values()} == {-1}


def test_an_offline_directory_is_an_error_of_its_own(world: OneLeader) -> None:
    directory = world.log(0).log_directory
    manager = world.broker.logs.manager
    manager.on_log_failed(world.log(0), DiskLost(directory, "gone"))
    results = {one.log_dir: one for one in ask(world)}
    lost = results.pop(directory)
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (lost.topics, lost.total_bytes) == ([], -1)
    (left,) = results.values()
    assert left.error_code == ErrorCode.NONE
    assert left.topics


def test_a_disk_that_does_not_tell_its_size_is_no_error(
    world: OneLeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> int:
        raise DiskLost(path, "no such call")

    monkeypatch.setattr(world.host.disk, "total_bytes", refuse)
    assert [(one.error_code, one.total_bytes) for one in ask(world)] == [(0, -1)] * 2
