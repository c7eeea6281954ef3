"""Every request that a broker serves, in every version, written by hand."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.e2e import raw_batches
from tests.e2e.raw_admin_requests import every_admin_request
from tests.e2e.raw_group_requests import every_group_request
from tests.e2e.raw_wire import ZERO_ID, Frame, Writer, finished, request_writer

PRODUCE = 0
FETCH = 1
LIST_OFFSETS = 2
METADATA = 3
LEADER_AND_ISR = 4
STOP_REPLICA = 5
UPDATE_METADATA = 6
API_VERSIONS = 18
CREATE_TOPICS = 19
DELETE_TOPICS = 20
INIT_PRODUCER_ID = 22
OFFSET_FOR_LEADER_EPOCH = 23
DESCRIBE_CONFIGS = 32
CREATE_PARTITIONS = 37
DESCRIBE_CLUSTER = 60


class Place(NamedTuple):
    """A partition and what a request may want to say about it."""

    topic: str = "corpus"
    topic_id: bytes = ZERO_ID
    partition: int = 0
    leader_epoch: int = -1


class Control(NamedTuple):
    """Who claims to be the controller, to a broker of which registration."""

    controller_id: int = 1
    controller_epoch: int = 1
    broker_epoch: int = -1
    is_kraft: bool = False


def produce(
    api_version: int,
    place: Place,
    records: bytes | None,
    *,
    acks: int = -1,
    timeout_ms: int = 10_000,
    transactional_id: str | None = None,
    correlation_id: int = 7,
) -> Frame:
    writer = request_writer(PRODUCE, api_version, correlation_id)
    if api_version >= 3:
        writer.string(transactional_id)
    writer.int16(acks)
    writer.int32(timeout_ms)

    def partition(place: Place) -> None:
        writer.int32(place.partition)
        writer.sized(records, "records")
        writer.tags()

    _by_topic(writer, [place], partition)
    writer.tags()
    return finished(PRODUCE, api_version, writer)


# tidy: long because the fields of a request stand together in the order of the wire
def fetch(
    api_version: int,
    places: Sequence[Place],
    *,
    offset: int = 0,
    replica_id: int = -1,
    replica_epoch: int = -1,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    last_fetched_epoch: int = -1,
    forgotten: Sequence[Place] = (),
) -> Frame:
    writer = request_writer(FETCH, api_version)
    if api_version <= 14:
        writer.int32(replica_id)
    for value in (max_wait_ms, min_bytes):
        writer.int32(value)
    if api_version >= 3:
        writer.int32(max_bytes)
    if api_version >= 4:
        writer.int8(isolation_level)
    if api_version >= 7:
        writer.int32(session_id)
        writer.int32(session_epoch)

    def partition(place: Place) -> None:
        writer.int32(place.partition)
        if api_version >= 9:
            writer.int32(place.leader_epoch)
        writer.int64(offset)
        if api_version >= 12:
            writer.int32(last_fetched_epoch)
        if api_version >= 5:
            writer.int64(-1)
        writer.int32(partition_max_bytes)
        writer.tags()

    def topic(place: Place) -> None:
        _fetch_topic_name(writer, api_version, place)
        writer.array([place], partition)
        writer.tags()

    def forget(place: Place) -> None:
        _fetch_topic_name(writer, api_version, place)
        writer.array([place.partition], writer.int32)
        writer.tags()

    writer.array(places, topic)
    if api_version >= 7:
        writer.array(forgotten, forget)
    if api_version >= 11:
        writer.string("")
    tagged: list[tuple[int, Writer]] = []
    if api_version >= 15 and replica_id >= 0:
        state = Writer(is_flexible=True)
        state.int32(replica_id)
        state.int64(replica_epoch)
        state.tags()
        tagged.append((1, state))
    writer.tags(tagged)
    return finished(FETCH, api_version, writer)


def _fetch_topic_name(writer: Writer, api_version: int, place: Place) -> None:
    if api_version >= 13:
        writer.uuid(place.topic_id)
    else:
        writer.string(place.topic)


def list_offsets(
    api_version: int,
    place: Place,
    *,
    timestamp: int = -1,
    replica_id: int = -1,
    isolation_level: int = 0,
) -> Frame:
    writer = request_writer(LIST_OFFSETS, api_version)
    writer.int32(replica_id)
    if api_version >= 2:
        writer.int8(isolation_level)

    def partition(place: Place) -> None:
        writer.int32(place.partition)
        if api_version >= 4:
            writer.int32(place.leader_epoch)
        writer.int64(timestamp)
        if api_version == 0:
            writer.int32(1)
        writer.tags()

    _by_topic(writer, [place], partition)
    writer.tags()
    return finished(LIST_OFFSETS, api_version, writer)


def metadata(
    api_version: int,
    topics: Sequence[str] | None,
    *,
    allow_creation: bool = False,
    topic_id: bytes = ZERO_ID,
) -> Frame:
    """`topics` None asks for all of them."""
    writer = request_writer(METADATA, api_version)

    def topic(name: str) -> None:
        if api_version >= 10:
            writer.uuid(topic_id)
        writer.string(name)
        writer.tags()

    writer.array([] if topics is None and api_version == 0 else topics, topic)
    if api_version >= 4:
        writer.boolean(allow_creation)
    if 8 <= api_version <= 10:
        writer.boolean(False)
    if api_version >= 8:
        writer.boolean(False)
    writer.tags()
    return finished(METADATA, api_version, writer)


def leader_and_isr(
    api_version: int,
    place: Place,
    control: Control,
    *,
    leader: int = 1,
    isr: Sequence[int] = (1,),
    replicas: Sequence[int] = (1,),
    partition_epoch: int = 0,
    is_new: bool = False,
    live_leaders: Sequence[tuple[int, str, int]] = ((1, "127.0.0.1", 9092),),
) -> Frame:
    writer = request_writer(LEADER_AND_ISR, api_version)
    _control(writer, control, api_version >= 7, api_version >= 2)
    if api_version >= 5:
        writer.int8(0)

    def state(place: Place) -> None:
        if api_version <= 1:
            writer.string(place.topic)
        writer.int32(place.partition)
        writer.int32(control.controller_epoch)
        writer.int32(leader)
        writer.int32(place.leader_epoch)
        writer.array(isr, writer.int32)
        writer.int32(partition_epoch)
        writer.array(replicas, writer.int32)
        if api_version >= 3:
            writer.array([], writer.int32)
            writer.array([], writer.int32)
        if api_version >= 1:
            writer.boolean(is_new)
        if api_version >= 6:
            writer.int8(0)
        writer.tags()

    _states(writer, place, state, api_version >= 2, api_version >= 5)

    def live(broker: tuple[int, str, int]) -> None:
        writer.int32(broker[0])
        writer.string(broker[1])
        writer.int32(broker[2])
        writer.tags()

    writer.array(live_leaders, live)
    writer.tags()
    return finished(LEADER_AND_ISR, api_version, writer)


def _control(writer: Writer, control: Control, has_kraft: bool, has_broker_epoch: bool) -> None:
    """How every control request begins."""
    writer.int32(control.controller_id)
    if has_kraft:
        writer.boolean(control.is_kraft)
    writer.int32(control.controller_epoch)
    if has_broker_epoch:
        writer.int64(control.broker_epoch)


def _states(
    writer: Writer,
    place: Place,
    state: Callable[[Place], None],
    is_grouped: bool,
    has_topic_id: bool,
) -> None:
    """One partition's state, by topic in the newer versions."""
    if not is_grouped:
        writer.array([place], state)
        return

    def topic(place: Place) -> None:
        writer.string(place.topic)
        if has_topic_id:
            writer.uuid(place.topic_id)
        writer.array([place], state)
        writer.tags()

    writer.array([place], topic)


def stop_replica(
    api_version: int, place: Place, control: Control, *, is_deletion: bool = False
) -> Frame:
    writer = request_writer(STOP_REPLICA, api_version)
    _control(writer, control, api_version >= 4, api_version >= 1)
    if api_version <= 2:
        writer.boolean(is_deletion)

    def ungrouped(place: Place) -> None:
        writer.string(place.topic)
        writer.int32(place.partition)
        writer.tags()

    def topic(place: Place) -> None:
        writer.string(place.topic)
        if api_version <= 2:
            writer.array([place.partition], writer.int32)
        else:
            writer.array([place], state)
        writer.tags()

    def state(place: Place) -> None:
        writer.int32(place.partition)
        writer.int32(place.leader_epoch)
        writer.boolean(is_deletion)
        writer.tags()

    writer.array([place], ungrouped if api_version == 0 else topic)
    writer.tags()
    return finished(STOP_REPLICA, api_version, writer)


def update_metadata(
    api_version: int,
    place: Place,
    control: Control,
    *,
    leader: int = 1,
    isr: Sequence[int] = (1,),
    replicas: Sequence[int] = (1,),
    broker: tuple[int, str, int] = (1, "127.0.0.1", 9092),
) -> Frame:
    writer = request_writer(UPDATE_METADATA, api_version)
    _control(writer, control, api_version >= 8, api_version >= 5)

    def state(place: Place) -> None:
        if api_version <= 4:
            writer.string(place.topic)
        writer.int32(place.partition)
        writer.int32(control.controller_epoch)
        writer.int32(leader)
        writer.int32(place.leader_epoch)
        writer.array(isr, writer.int32)
        writer.int32(0)
        writer.array(replicas, writer.int32)
        if api_version >= 4:
            writer.array([], writer.int32)
        writer.tags()

    _states(writer, place, state, api_version >= 5, api_version >= 7)

    def endpoint(broker: tuple[int, str, int]) -> None:
        writer.int32(broker[2])
        writer.string(broker[1])
        if api_version >= 3:
            writer.string("PLAINTEXT")
        writer.int16(0)
        writer.tags()

    def live(broker: tuple[int, str, int]) -> None:
        writer.int32(broker[0])
        if api_version == 0:
            writer.string(broker[1])
            writer.int32(broker[2])
        else:
            writer.array([broker], endpoint)
        if api_version >= 2:
            writer.string(None)
        writer.tags()

    writer.array([broker], live)
    writer.tags()
    return finished(UPDATE_METADATA, api_version, writer)


def api_versions(api_version: int, name: str = "raw-client", version: str = "1.0") -> Frame:
    writer = request_writer(API_VERSIONS, api_version)
    if api_version >= 3:
        writer.string(name)
        writer.string(version)
    writer.tags()
    return finished(API_VERSIONS, api_version, writer)


def create_topics(
    api_version: int,
    names: Sequence[str],
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
    timeout_ms: int = 10_000,
    validate_only: bool = False,
) -> Frame:
    writer = request_writer(CREATE_TOPICS, api_version)

    def assignment(row: tuple[int, Sequence[int]]) -> None:
        writer.int32(row[0])
        writer.array(row[1], writer.int32)
        writer.tags()

    def config(row: tuple[str, str | None]) -> None:
        writer.string(row[0])
        writer.string(row[1])
        writer.tags()

    def topic(name: str) -> None:
        writer.string(name)
        writer.int32(partitions)
        writer.int16(replication_factor)
        writer.array(assignments, assignment)
        writer.array(configs, config)
        writer.tags()

    writer.array(names, topic)
    writer.int32(timeout_ms)
    if api_version >= 1:
        writer.boolean(validate_only)
    writer.tags()
    return finished(CREATE_TOPICS, api_version, writer)


def delete_topics(
    api_version: int,
    names: Sequence[str | None],
    *,
    topic_id: bytes = ZERO_ID,
    timeout_ms: int = 10_000,
) -> Frame:
    writer = request_writer(DELETE_TOPICS, api_version)

    def topic(name: str | None) -> None:
        writer.string(name)
        writer.uuid(topic_id)
        writer.tags()

    writer.array(names, topic if api_version >= 6 else writer.string)
    writer.int32(timeout_ms)
    writer.tags()
    return finished(DELETE_TOPICS, api_version, writer)


def create_partitions(
    api_version: int,
    topic: str,
    count: int,
    *,
    assignments: Sequence[Sequence[int]] | None = None,
    timeout_ms: int = 10_000,
) -> Frame:
    writer = request_writer(CREATE_PARTITIONS, api_version)

    def assignment(brokers: Sequence[int]) -> None:
        writer.array(brokers, writer.int32)
        writer.tags()

    def row(name: str) -> None:
        writer.string(name)
        writer.int32(count)
        writer.array(assignments, assignment)
        writer.tags()

    writer.array([topic], row)
    writer.int32(timeout_ms)
    writer.boolean(False)
    writer.tags()
    return finished(CREATE_PARTITIONS, api_version, writer)


def init_producer_id(
    api_version: int,
    *,
    transactional_id: str | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> Frame:
    writer = request_writer(INIT_PRODUCER_ID, api_version)
    writer.string(transactional_id)
    writer.int32(60_000)
    if api_version >= 3:
        writer.int64(producer_id)
        writer.int16(producer_epoch)
    writer.tags()
    return finished(INIT_PRODUCER_ID, api_version, writer)


def offset_for_leader_epoch(
    api_version: int, place: Place, *, asked_epoch: int = 0, replica_id: int = -1
) -> Frame:
    """`place.leader_epoch` is the one the sender believes to be current."""
    writer = request_writer(OFFSET_FOR_LEADER_EPOCH, api_version)
    if api_version >= 3:
        writer.int32(replica_id)

    def partition(place: Place) -> None:
        writer.int32(place.partition)
        if api_version >= 2:
            writer.int32(place.leader_epoch)
        writer.int32(asked_epoch)
        writer.tags()

    _by_topic(writer, [place], partition)
    writer.tags()
    return finished(OFFSET_FOR_LEADER_EPOCH, api_version, writer)


def describe_configs(
    api_version: int, resources: Sequence[tuple[int, str]], keys: Sequence[str] | None = None
) -> Frame:
    """A resource is its type (2 topic, 4 broker) and its name."""
    writer = request_writer(DESCRIBE_CONFIGS, api_version)

    def resource(row: tuple[int, str]) -> None:
        writer.int8(row[0])
        writer.string(row[1])
        writer.array(keys, writer.string)
        writer.tags()

    writer.array(resources, resource)
    if api_version >= 1:
        writer.boolean(True)
    if api_version >= 3:
        writer.boolean(False)
    writer.tags()
    return finished(DESCRIBE_CONFIGS, api_version, writer)


def describe_cluster(api_version: int) -> Frame:
    writer = request_writer(DESCRIBE_CLUSTER, api_version)
    writer.boolean(True)
    if api_version >= 1:
        writer.int8(1)
    writer.tags()
    return finished(DESCRIBE_CLUSTER, api_version, writer)


def _by_topic(writer: Writer, places: Sequence[Place], partition: Callable[[Place], None]) -> None:
    """A list of topics by name, each with its partitions."""

    def topic(place: Place) -> None:
        writer.string(place.topic)
        writer.array([place], partition)
        writer.tags()

    writer.array(places, topic)


def every_request(place: Place, control: Control, port: int) -> Iterator[Frame]:
    """One or more good requests of each API in each version."""
    here = (control.controller_id, "127.0.0.1", port)
    rows = raw_batches.batch([raw_batches.Record(b"one"), raw_batches.Record(b"two")])
    idempotent = raw_batches.batch(producer_id=1, producer_epoch=0, base_sequence=0)
    for version in range(12):
        if version < 3:
            records = raw_batches.message(b"old", magic=0 if version < 2 else 1)
        else:
            records = rows
            yield produce(version, place, idempotent)
            yield produce(version, place, raw_batches.batch(codec="gzip"), acks=1)
        yield produce(version, place, records)
        yield produce(version, place, records, acks=0)
    for version in range(18):
        yield fetch(version, [place])
        yield fetch(version, [place], max_wait_ms=5, min_bytes=1, offset=1 << 40)
        if version >= 7:
            yield fetch(version, [place, place._replace(partition=1)], session_epoch=0)
        if version >= 4:
            yield fetch(version, [place], replica_id=control.controller_id + 1)
    for version in range(10):
        for timestamp in (-1, -2, -3, raw_batches.wall_ms() - 1000):
            yield list_offsets(version, place, timestamp=timestamp)
    for version in range(13):
        yield metadata(version, None)
        yield metadata(version, [place.topic, "other"], allow_creation=True)
    for version in range(8):
        yield leader_and_isr(version, place, control, live_leaders=[here])
        yield leader_and_isr(version, place, control, is_new=True, live_leaders=[here])
    for version in range(5):
        yield stop_replica(version, place, control)
        yield stop_replica(version, place._replace(topic="doomed"), control, is_deletion=True)
        yield api_versions(version)
        yield offset_for_leader_epoch(version, place)
        yield describe_configs(version, [(2, place.topic), (4, str(control.controller_id))])
    for version in range(9):
        yield update_metadata(version, place, control, broker=here)
    for version in range(8):
        yield create_topics(version, ["made"], configs=[("retention.ms", "1000")], timeout_ms=50)
        yield create_topics(
            version, ["placed"], partitions=-1, replication_factor=-1, assignments=[(0, [1])]
        )
    for version in range(7):
        yield delete_topics(version, ["doomed", "made"], timeout_ms=50)
    for version in range(4):
        yield create_partitions(version, place.topic, 3, timeout_ms=50)
    for version in range(6):
        yield init_producer_id(version)
    for version in range(2):
        yield describe_cluster(version)
    yield from every_admin_request(place.topic, control.controller_id)
    yield from every_group_request(place.topic)
