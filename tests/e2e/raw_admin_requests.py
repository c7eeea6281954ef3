"""Requests about settings, log directories, records and producers, written by hand."""

from collections.abc import Callable, Iterator, Sequence

from tests.e2e.raw_wire import Frame, Writer, finished, request_writer

DELETE_RECORDS = 21
ALTER_CONFIGS = 33
DESCRIBE_LOG_DIRS = 35
INCREMENTAL_ALTER_CONFIGS = 44
DESCRIBE_PRODUCERS = 61


def alter_configs(
    api_version: int, resource_type: int, name: str, settings: Sequence[tuple[str, str | None]]
) -> Frame:
    """A resource is its type (2 topic, 4 broker) and its name."""
    writer = request_writer(ALTER_CONFIGS, api_version)

    def setting(row: tuple[str, str | None]) -> None:
        writer.string(row[0])
        writer.string(row[1])
        writer.tags()

    def resource(name: str) -> None:
        writer.int8(resource_type)
        writer.string(name)
        writer.array(settings, setting)
        writer.tags()

    writer.array([name], resource)
    writer.boolean(False)
    writer.tags()
    return finished(ALTER_CONFIGS, api_version, writer)


def incremental_alter_configs(
    api_version: int,
    resource_type: int,
    name: str,
    edits: Sequence[tuple[str, int, str | None]],
) -> Frame:
    """An edit is a key, what is done to it (0 set, 1 delete, 2 append, 3 subtract), a value."""
    writer = request_writer(INCREMENTAL_ALTER_CONFIGS, api_version)

    def edit(row: tuple[str, int, str | None]) -> None:
        writer.string(row[0])
        writer.int8(row[1])
        writer.string(row[2])
        writer.tags()

    def resource(name: str) -> None:
        writer.int8(resource_type)
        writer.string(name)
        writer.array(edits, edit)
        writer.tags()

    writer.array([name], resource)
    writer.boolean(False)
    writer.tags()
    return finished(INCREMENTAL_ALTER_CONFIGS, api_version, writer)


def delete_records(
    api_version: int, topic: str, rows: Sequence[tuple[int, int]], timeout_ms: int = 50
) -> Frame:
    """Rows are partitions and offsets."""
    writer = request_writer(DELETE_RECORDS, api_version)

    def row(one: tuple[int, int]) -> None:
        writer.int32(one[0])
        writer.int64(one[1])
        writer.tags()

    def named(name: str) -> None:
        writer.string(name)
        writer.array(rows, row)
        writer.tags()

    writer.array([topic], named)
    writer.int32(timeout_ms)
    writer.tags()
    return finished(DELETE_RECORDS, api_version, writer)


def describe_log_dirs(api_version: int, topic: str | None) -> Frame:
    """None asks for everything."""
    writer = request_writer(DESCRIBE_LOG_DIRS, api_version)
    writer.array(None if topic is None else [topic], _partitions_of(writer))
    writer.tags()
    return finished(DESCRIBE_LOG_DIRS, api_version, writer)


def describe_producers(api_version: int, topic: str) -> Frame:
    writer = request_writer(DESCRIBE_PRODUCERS, api_version)
    writer.array([topic], _partitions_of(writer))
    writer.tags()
    return finished(DESCRIBE_PRODUCERS, api_version, writer)


def _partitions_of(writer: Writer) -> Callable[[str], None]:
    def named(name: str) -> None:
        writer.string(name)
        writer.array([0, 1], writer.int32)
        writer.tags()

    return named


def every_admin_request(topic: str, broker_id: int) -> Iterator[Frame]:
    """Good requests of each of these APIs in each version."""
    for version in range(3):
        yield alter_configs(version, 2, topic, [("retention.ms", "604800000")])
        yield alter_configs(version, 4, str(broker_id), [("log.index.interval.bytes", "4096")])
        yield delete_records(version, topic, [(0, 0), (1, -1)])
    for version in range(2):
        yield incremental_alter_configs(
            version, 2, topic, [("retention.ms", 0, "604800000"), ("segment.ms", 1, None)]
        )
        yield incremental_alter_configs(version, 2, topic, [("cleanup.policy", 2, "delete")])
        yield incremental_alter_configs(version, 4, "", [("log.index.interval.bytes", 1, None)])
    for version in range(5):
        yield describe_log_dirs(version, None)
        yield describe_log_dirs(version, topic)
    yield describe_producers(0, topic)
