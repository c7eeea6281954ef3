"""Whose log directories are, and what is refused without changing anything."""

import pytest

from barnabas.formats.logdir.meta_properties import MetaProperties, encode_meta_properties
from barnabas.model.errors import DiskLost, LogDirectoryInUse, LogDirectoryRefused
from barnabas.storage.log_dirs import LogDirectories
from tests.worlds.log_world import BROKER_ID, CLUSTER_ID, LogWorld, produce
from tests.worlds.memory_disk import Fault, MemoryDisk


def meta(version: int = 0, cluster: str | None = CLUSTER_ID, broker: int | None = 1) -> bytes:
    return encode_meta_properties(MetaProperties(version, cluster, broker))


def refusal(disk: MemoryDisk, *paths: str, cluster: str = CLUSTER_ID, broker: int = 1) -> str:
    """The text of the refusal; nothing was changed by it."""
    before = {path: disk.snapshot(path) for path in paths}
    operations = disk.operations
    world = LogWorld(disk, disk.run_jobs, log_dirs=paths)
    with pytest.raises(LogDirectoryRefused) as refused:
        world.start(cluster, broker)
    assert {path: disk.snapshot(path) for path in paths} == before
    assert disk.operations == operations
    return str(refused.value)


def test_new_directories_are_made_and_marked() -> None:
    world = LogWorld(log_dirs=("/a/b/c", "/d"))
    world.start()
    for path in ("/a/b/c", "/d"):
        data = world.memory.read_file(f"{path}/meta.properties")
        assert b"version=0\n" in data
        assert f"cluster.id={CLUSTER_ID}\n".encode() in data
        assert b"broker.id=1\n" in data
        assert world.memory.exists(f"{path}/.lock")
    world.stop()
    for path in ("/a/b/c", "/d"):
        assert not world.memory.exists(f"{path}/.lock")
        assert world.memory.read_file(f"{path}/.kafka_cleanshutdown") == (
            b'{"version":0,"brokerEpoch":-1}'
        )


def test_another_clusters_directory_is_refused_with_both_ids() -> None:
    disk = MemoryDisk()
    disk.place("/logs/meta.properties", meta(cluster="theirs"))
    text = refusal(disk, "/logs", cluster="ours")
    assert "found cluster.id=theirs" in text
    assert "expected ours" in text


def test_another_brokers_directory_is_refused_with_both_ids() -> None:
    disk = MemoryDisk()
    disk.place("/logs/meta.properties", meta(broker=7))
    text = refusal(disk, "/logs", broker=1)
    assert "found broker.id=7" in text
    assert "expected 1" in text


def test_a_broker_without_an_id_takes_that_of_its_directory() -> None:
    disk = MemoryDisk()
    disk.place("/logs/meta.properties", meta(broker=7))
    directories = LogDirectories(disk, ("/logs",))
    directories.inspect()
    assert directories.stored_broker_id == 7
    assert directories.stored_cluster_id == CLUSTER_ID
    directories.check_owner(CLUSTER_ID, -1)


def test_a_directory_in_use_is_said_to_be_before_it_is_looked_at_whose_it_is() -> None:
    disk = MemoryDisk()
    disk.place("/logs/meta.properties", meta(cluster="theirs"))
    disk.lock("/logs/.lock")
    directories = LogDirectories(disk, ("/logs",))
    with pytest.raises(LogDirectoryInUse, match=r"/logs/\.lock is already locked by this process"):
        directories.inspect()


def test_directories_of_two_brokers_are_refused_with_their_places() -> None:
    disk = MemoryDisk()
    disk.place("/a/meta.properties", meta(broker=1))
    disk.place("/b/meta.properties", meta(broker=2))
    text = refusal(disk, "/a", "/b")
    assert "1 in /a" in text
    assert "2 in /b" in text


def test_a_kraft_directory_is_refused() -> None:
    disk = MemoryDisk()
    disk.place("/logs/meta.properties", b"version=1\nnode.id=1\ncluster.id=x\n")
    text = refusal(disk, "/logs")
    assert "found version=1" in text
    assert "expected version=0" in text
    disk = MemoryDisk()
    disk.place("/logs/__cluster_metadata-0/00000000000000000000.log", b"")
    assert "KRaft" in refusal(disk, "/logs")


def test_a_malformed_meta_properties_is_refused() -> None:
    disk = MemoryDisk()
    disk.place("/logs/meta.properties", b"version=many\n")
    assert "version=many" in refusal(disk, "/logs")


@pytest.mark.parametrize("name", ["lost+found", "my-data", "topic-0-copy"])
def test_a_directory_that_is_no_log_is_refused(name: str) -> None:
    disk = MemoryDisk()
    disk.place(f"/logs/{name}/notes.txt", b"mine")
    text = refusal(disk, "/logs")
    assert f"found {name}" in text
    assert "expected directories named topic-partition" in text


def test_the_cache_of_tiered_storage_is_passed_over() -> None:
    disk = MemoryDisk()
    disk.place("/logs/remote-log-index-cache/x.index", b"")
    world = LogWorld(disk, disk.run_jobs)
    world.start()
    assert world.opened == 1


def test_a_directory_named_twice_is_refused() -> None:
    with pytest.raises(LogDirectoryRefused, match="more than once"):
        LogDirectories(MemoryDisk(), ("/a", "/b", "/a")).inspect()


def test_a_directory_in_use_is_refused_and_the_locks_taken_so_far_are_given_back() -> None:
    disk = MemoryDisk()
    other = LogWorld(disk, disk.run_jobs, log_dirs=("/b",))
    other.start()
    world = LogWorld(disk, disk.run_jobs, log_dirs=("/a", "/b"))
    with pytest.raises(LogDirectoryRefused, match="already locked"):
        world.start()
    assert not disk.exists("/a/.lock")
    other.stop()
    world.start()
    assert world.opened == 1


def test_a_directory_that_cannot_be_used_is_offline_from_the_start() -> None:
    disk = MemoryDisk()
    disk.place("/a", b"a file where a directory should be")
    world = LogWorld(disk, disk.run_jobs, log_dirs=("/a", "/b"))
    world.start()
    world.settle()
    assert [(one.path, one.topic_partitions) for one in world.lost] == [("/a", ())]
    assert world.log().log_directory == "/b"


def test_without_a_usable_directory_there_is_no_start() -> None:
    disk = MemoryDisk()
    disk.place("/a", b"a file where a directory should be")
    world = LogWorld(disk, disk.run_jobs, log_dirs=("/a",))
    with pytest.raises(DiskLost, match="no log directory is left"):
        world.start()


def test_a_refusing_disk_at_the_start_costs_that_directory() -> None:
    for operation in range(12):
        disk = MemoryDisk()
        disk.plan(operation, Fault.FAIL)
        world = LogWorld(disk, disk.run_jobs, log_dirs=("/a", "/b"))
        world.start(CLUSTER_ID, BROKER_ID)
        world.settle()
        assert world.opened == 1
        assert len(world.lost) == 1
        produce(world.log(), b"x")


def test_what_was_there_before_37_counts_as_a_clean_stop() -> None:
    world = LogWorld()
    world.start()
    produce(world.log(), b"x")
    world.stop()
    world.memory.place("/logs/.kafka_cleanshutdown", b"")
    world.start()
    assert not world.recovered
    world.memory.kill_process()
    world.start()
    assert world.recovered
