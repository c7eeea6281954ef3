"""Requests about consumer groups, in every version, written by hand."""

from collections.abc import Callable, Iterator, Sequence

from tests.e2e.raw_wire import Frame, Writer, finished, request_writer

OFFSET_COMMIT = 8
OFFSET_FETCH = 9
FIND_COORDINATOR = 10
JOIN_GROUP = 11
HEARTBEAT = 12
LEAVE_GROUP = 13
SYNC_GROUP = 14
DESCRIBE_GROUPS = 15
LIST_GROUPS = 16
DELETE_GROUPS = 42
OFFSET_DELETE = 47

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x06corpus\xff\xff\xff\xff"


def offset_commit(version: int, group: str, topic: str, *, generation: int = -1) -> Frame:
    writer = request_writer(OFFSET_COMMIT, version)
    writer.string(group)
    if version >= 1:
        writer.int32(generation)
        writer.string("" if generation < 0 else "member")
    if version >= 7:
        writer.string(None)
    if 2 <= version <= 4:
        writer.int64(-1)

    def partition(index: int) -> None:
        writer.int32(index)
        writer.int64(3)
        if version >= 6:
            writer.int32(-1)
        if version == 1:
            writer.int64(-1)
        writer.string("note")
        writer.tags()

    _topics(writer, topic, partition)
    writer.tags()
    return finished(OFFSET_COMMIT, version, writer)


def offset_fetch(version: int, group: str, topic: str | None) -> Frame:
    writer = request_writer(OFFSET_FETCH, version)

    def topics() -> None:
        if topic is None:
            writer.array(None, lambda _: None)
        else:
            writer.array([topic], one)

    def one(name: str) -> None:
        writer.string(name)
        writer.array([0, 1], writer.int32)
        writer.tags()

    def of_group(name: str) -> None:
        writer.string(name)
        if version >= 9:
            writer.string(None)
            writer.int32(-1)
        topics()
        writer.tags()

    if version >= 8:
        writer.array([group], of_group)
    else:
        writer.string(group)
        topics()
    if version >= 7:
        writer.boolean(False)
    writer.tags()
    return finished(OFFSET_FETCH, version, writer)


def find_coordinator(version: int, keys: Sequence[str], key_type: int = 0) -> Frame:
    writer = request_writer(FIND_COORDINATOR, version)
    if version < 4:
        writer.string(keys[0])
    if version >= 1:
        writer.int8(key_type)
    if version >= 4:
        writer.array(keys, writer.string)
    writer.tags()
    return finished(FIND_COORDINATOR, version, writer)


def join_group(version: int, group: str, member: str = "", instance: str | None = None) -> Frame:
    writer = request_writer(JOIN_GROUP, version)
    writer.string(group)
    writer.int32(6_000)
    if version >= 1:
        writer.int32(1_000)
    writer.string(member)
    if version >= 5:
        writer.string(instance)
    writer.string("consumer")

    def protocol(name: str) -> None:
        writer.string(name)
        writer.sized(SUBSCRIPTION, "bytes")
        writer.tags()

    writer.array(["range", "roundrobin"], protocol)
    if version >= 8:
        writer.string("corpus")
    writer.tags()
    return finished(JOIN_GROUP, version, writer)


def sync_group(version: int, group: str, member: str) -> Frame:
    writer = request_writer(SYNC_GROUP, version)
    writer.string(group)
    writer.int32(1)
    writer.string(member)
    if version >= 3:
        writer.string(None)
    if version >= 5:
        writer.string("consumer")
        writer.string("range")

    def assignment(name: str) -> None:
        writer.string(name)
        writer.sized(b"assigned", "bytes")
        writer.tags()

    writer.array([member], assignment)
    writer.tags()
    return finished(SYNC_GROUP, version, writer)


def heartbeat(version: int, group: str, member: str) -> Frame:
    writer = request_writer(HEARTBEAT, version)
    writer.string(group)
    writer.int32(1)
    writer.string(member)
    if version >= 3:
        writer.string(None)
    writer.tags()
    return finished(HEARTBEAT, version, writer)


def leave_group(version: int, group: str, member: str) -> Frame:
    writer = request_writer(LEAVE_GROUP, version)
    writer.string(group)

    def leaving(name: str) -> None:
        writer.string(name)
        writer.string(None)
        if version >= 5:
            writer.string("corpus")
        writer.tags()

    if version < 3:
        writer.string(member)
    else:
        writer.array([member], leaving)
    writer.tags()
    return finished(LEAVE_GROUP, version, writer)


def describe_groups(version: int, groups: Sequence[str]) -> Frame:
    writer = request_writer(DESCRIBE_GROUPS, version)
    writer.array(groups, writer.string)
    if version >= 3:
        writer.boolean(True)
    writer.tags()
    return finished(DESCRIBE_GROUPS, version, writer)


def list_groups(version: int) -> Frame:
    writer = request_writer(LIST_GROUPS, version)
    if version >= 4:
        writer.array(["Stable", "Empty"], writer.string)
    if version >= 5:
        writer.array(["classic"], writer.string)
    writer.tags()
    return finished(LIST_GROUPS, version, writer)


def delete_groups(version: int, groups: Sequence[str]) -> Frame:
    writer = request_writer(DELETE_GROUPS, version)
    writer.array(groups, writer.string)
    writer.tags()
    return finished(DELETE_GROUPS, version, writer)


def offset_delete(group: str, topic: str) -> Frame:
    writer = request_writer(OFFSET_DELETE, 0)
    writer.string(group)
    _topics(writer, topic, writer.int32)
    return finished(OFFSET_DELETE, 0, writer)


def _topics(writer: Writer, topic: str, partition: Callable[[int], None]) -> None:
    def one(name: str) -> None:
        writer.string(name)
        writer.array([0, 1], partition)
        writer.tags()

    writer.array([topic], one)


def every_group_request(topic: str) -> Iterator[Frame]:
    """One or more good requests of each of these APIs in each version."""
    for version in range(10):
        yield offset_commit(version, "corpus", topic)
        yield offset_commit(version, "other", topic, generation=1)
        yield offset_fetch(version, "corpus", topic)
        if version >= 2:
            yield offset_fetch(version, "corpus", None)
        yield join_group(version, "corpus")
        yield join_group(version, "corpus", "member", "instance")
    for version in range(7):
        yield find_coordinator(version, ["corpus"])
        yield find_coordinator(version, ["transaction"], 1 if version else 0)
    for version in range(6):
        yield leave_group(version, "corpus", "member")
        yield sync_group(version, "corpus", "member")
        yield describe_groups(version, ["corpus", "other"])
        yield list_groups(version)
    for version in range(5):
        yield heartbeat(version, "corpus", "member")
    for version in range(3):
        yield delete_groups(version, ["other"])
    yield offset_delete("corpus", topic)
