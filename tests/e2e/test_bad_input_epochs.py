"""Stale and future epochs: of partitions, of controllers and of brokers."""

from typing import NamedTuple

import pytest

from tests.behaviours import behaviour
from tests.e2e import raw_answers, raw_requests
from tests.e2e.raw_batches import batch
from tests.e2e.raw_requests import Control, Place
from tests.e2e.raw_wire import Frame
from tests.e2e.subjects import KAFKA, OURS, Subject

NONE = 0
UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
NOT_LEADER_OR_FOLLOWER = 6
STALE_CONTROLLER_EPOCH = 11
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
STALE_BROKER_EPOCH = 77
INCONSISTENT_TOPIC_ID = 103

RAISED_EPOCH = 5
CONTROL = Control(controller_id=1, controller_epoch=1)


def send_control(subject: Subject, frame: Frame) -> tuple[int, list[int]]:
    with subject.connect() as connection:
        return raw_answers.controlled(frame, connection.ask(frame))


def become_leader(subject: Subject, place: Place, control: Control = CONTROL) -> Frame:
    """What a controller would send to make this broker lead the partition."""
    return raw_requests.leader_and_isr(
        7, place, control, live_leaders=[(1, "127.0.0.1", subject.port)]
    )


def raised(subject: Subject, name: str) -> Place:
    """A partition whose leader epoch a controller has raised."""
    place = subject.topic(f"epochs-{name}")
    if place.leader_epoch < RAISED_EPOCH:
        asked = become_leader(subject, place._replace(leader_epoch=RAISED_EPOCH))
        assert send_control(subject, asked) in [(NONE, [NONE]), (NONE, [STALE_CONTROLLER_EPOCH])]
    return place._replace(leader_epoch=-1)


def errors_of_reading(subject: Subject, place: Place) -> dict[str, int]:
    """What Fetch, ListOffsets and OffsetForLeaderEpoch say to a reader of a leader epoch."""
    fetching = raw_requests.fetch(10, [place])
    listing = raw_requests.list_offsets(5, place)
    asking = raw_requests.offset_for_leader_epoch(3, place)
    with subject.connect() as connection:
        fetched = raw_answers.fetched(fetching, connection.ask(fetching))
        listed = raw_answers.listed_offset(listing, connection.ask(listing))
        ended = raw_answers.epoch_end(asking, connection.ask(asking))
    return {
        "Fetch": fetched.partitions[0].error_code,
        "ListOffsets": listed.error_code,
        "OffsetForLeaderEpoch": ended.error_code,
    }


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [
        (-1, NONE),
        (0, FENCED_LEADER_EPOCH),
        (RAISED_EPOCH - 1, FENCED_LEADER_EPOCH),
        (RAISED_EPOCH, NONE),
        (RAISED_EPOCH + 1, UNKNOWN_LEADER_EPOCH),
        (2**31 - 1, UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_leader_epoch_of_a_reader(subject: Subject, leader_epoch: int, error: int) -> None:
    place = raised(subject, "readers")._replace(leader_epoch=leader_epoch)
    assert set(errors_of_reading(subject, place).values()) == {error}
    subject.check_good_requests()


@behaviour("L8")
def test_a_controller_with_an_old_leader_epoch_is_not_obeyed(subject: Subject) -> None:
    place = raised(subject, "old-leader-epoch")
    for leader_epoch in (0, RAISED_EPOCH - 1, RAISED_EPOCH):
        asked = become_leader(subject, place._replace(leader_epoch=leader_epoch))
        assert send_control(subject, asked) == (NONE, [STALE_CONTROLLER_EPOCH])
    current = place._replace(leader_epoch=RAISED_EPOCH)
    assert set(errors_of_reading(subject, current).values()) == {NONE}


@behaviour("S4")
def test_a_replica_is_not_stopped_with_an_old_leader_epoch(subject: Subject) -> None:
    place = raised(subject, "stop")._replace(leader_epoch=RAISED_EPOCH - 1)
    for is_deletion in (False, True):
        asked = raw_requests.stop_replica(4, place, CONTROL, is_deletion=is_deletion)
        assert send_control(subject, asked) == (NONE, [FENCED_LEADER_EPOCH])
    assert subject.produce(place, batch()).error_code == NONE


def control_requests(subject: Subject, place: Place, control: Control) -> list[Frame]:
    here = (1, "127.0.0.1", subject.port)
    return [
        become_leader(subject, place, control),
        raw_requests.update_metadata(8, place, control, leader=2, broker=here),
        raw_requests.stop_replica(4, place, control, is_deletion=True),
    ]


@behaviour("L4", "S2", "N11")
@pytest.mark.parametrize("controller_epoch", [0, -1, -(2**31)])
def test_a_controller_of_the_past_is_not_obeyed(subject: Subject, controller_epoch: int) -> None:
    place = subject.topic("epochs-past")._replace(leader_epoch=RAISED_EPOCH)
    control = CONTROL._replace(controller_epoch=controller_epoch)
    for asked in control_requests(subject, place, control):
        error, partition_errors = send_control(subject, asked)
        assert error == STALE_CONTROLLER_EPOCH
        assert set(partition_errors) <= {STALE_CONTROLLER_EPOCH}
    assert subject.describe(place.topic).leader_epoch == 0
    assert subject.produce(place, batch()).error_code == NONE


@behaviour("L2", "S1")
@pytest.mark.parametrize("broker_epoch", [0, 5, -2])
def test_what_was_meant_for_an_earlier_life_is_not_obeyed(
    subject: Subject, broker_epoch: int
) -> None:
    place = subject.topic("epochs-earlier-life")._replace(leader_epoch=RAISED_EPOCH)
    control = CONTROL._replace(broker_epoch=broker_epoch)
    for asked in control_requests(subject, place, control):
        error, partition_errors = send_control(subject, asked)
        assert error == STALE_BROKER_EPOCH
        assert set(partition_errors) <= {STALE_BROKER_EPOCH}
    assert subject.describe(place.topic).leader_epoch == 0
    assert subject.produce(place, batch()).error_code == NONE


@behaviour("L6")
def test_a_topic_of_another_id_is_not_touched(subject: Subject) -> None:
    place = subject.topic("epochs-topic-id")
    asked = become_leader(subject, place._replace(topic_id=b"\x01" * 16, leader_epoch=RAISED_EPOCH))
    assert send_control(subject, asked) == (NONE, [INCONSISTENT_TOPIC_ID])
    assert subject.produce(place, batch()).error_code == NONE


@behaviour("L7")
def test_a_replica_that_is_not_assigned_is_not_made(subject: Subject) -> None:
    place = subject.topic("epochs-not-assigned")._replace(leader_epoch=RAISED_EPOCH)
    asked = raw_requests.leader_and_isr(7, place, CONTROL, leader=2, isr=[2], replicas=[2])
    assert send_control(subject, asked) == (NONE, [UNKNOWN_TOPIC_OR_PARTITION])
    assert subject.produce(place, batch()).error_code == NONE


class Elsewhere(NamedTuple):
    """Where a partition is that this broker does not lead, and the answer."""

    name: str
    is_in_metadata: bool
    is_hosted: bool
    error: int


@behaviour("L27")
@pytest.mark.parametrize(
    "case",
    [
        Elsewhere("unknown", False, False, UNKNOWN_TOPIC_OR_PARTITION),
        Elsewhere("not-hosted", True, False, NOT_LEADER_OR_FOLLOWER),
        Elsewhere("hosted-without-a-leader", True, True, NOT_LEADER_OR_FOLLOWER),
    ],
    ids=lambda case: case.name,
)
def test_a_partition_that_is_not_led_here(subject: Subject, case: Elsewhere) -> None:
    topic = subject.topic(f"epochs-{case.name}")
    place = topic._replace(partition=7, leader_epoch=0)
    here = (1, "127.0.0.1", subject.port)
    if case.is_in_metadata:
        telling = raw_requests.update_metadata(
            8, place, CONTROL, leader=2, isr=[2], replicas=[2], broker=here
        )
        assert send_control(subject, telling) == (NONE, [])
    if case.is_hosted:
        hosting = raw_requests.leader_and_isr(7, place, CONTROL, leader=-1, live_leaders=[])
        assert send_control(subject, hosting) == (NONE, [NONE])
    place = place._replace(leader_epoch=-1)
    assert set(errors_of_reading(subject, place).values()) == {case.error}
    assert subject.produce(place, batch()).error_code == case.error
    subject.check_good_requests()


@pytest.mark.parametrize("partition", [-1, -5, 2**31 - 1])
def test_a_partition_that_cannot_be(subject: Subject, partition: int) -> None:
    place = subject.topic("epochs-numbers")._replace(partition=partition, leader_epoch=-1)
    assert set(errors_of_reading(subject, place).values()) == {UNKNOWN_TOPIC_OR_PARTITION}
    assert subject.produce(place, batch()).error_code == UNKNOWN_TOPIC_OR_PARTITION
    subject.check_good_requests()


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        ("../../elsewhere", 0),
        ("", 0),
        ("..", 0),
        ("a/b", 0),
        ("n" * 250, 0),
        ("n" * 32767, 0),
        ("a\x00b", 0),
        ("n" * 249, 2**31 - 1),
        ("n" * 249, 100_000),
        ("epochs-negative", -1),
        ("epochs-negative", -5),
    ],
)
def test_a_log_that_has_no_place_is_not_made(ours: Subject, topic: str, partition: int) -> None:
    """Its directory would be outside, or one that the next start takes for somebody else's."""
    assert ours.process is not None
    root = ours.process.directory.parent
    before = sorted(str(path) for path in root.rglob("*") if path.is_dir())
    place = Place(topic, b"\x07" * 16, partition, 0)
    for is_new in (True, False):
        for leader in (1, -1, 2):
            asked = raw_requests.leader_and_isr(7, place, CONTROL, leader=leader, is_new=is_new)
            assert send_control(ours, asked) == (NONE, [INVALID_TOPIC_EXCEPTION])
    assert sorted(str(path) for path in root.rglob("*") if path.is_dir()) == before
    ours.check_good_requests()


@pytest.mark.parametrize("leader_epoch", [-1, -2, -(2**31)])
def test_an_epoch_before_the_first_is_old(subject: Subject, leader_epoch: int) -> None:
    place = Place("epochs-before-the-first", b"\x08" * 16, 0, leader_epoch)
    asked = become_leader(subject, place)
    expected = (NONE, [STALE_CONTROLLER_EPOCH])
    if subject.name == KAFKA and leader_epoch == -1:
        # It has made half a partition by then, and trips over it.
        expected = (NOT_LEADER_OR_FOLLOWER, [NOT_LEADER_OR_FOLLOWER])
    assert send_control(subject, asked) == expected
    subject.check_good_requests()


def test_a_partition_twice_in_one_request_is_made_once(subject: Subject) -> None:
    place = Place("epochs-twice", b"\x09" * 16, 0, 0)
    once = become_leader(subject, place)
    element = max((m for m in once.marks if m.kind == "element"), key=lambda m: m.end - m.start)
    counted = next(m for m in once.marks if m.kind == "count")
    data = once.data
    twice = once.replaced(
        data[: counted.start]
        + b"\x03"
        + data[counted.end : element.end]
        + data[element.start : element.end]
        + data[element.end :]
    )
    error, partition_errors = send_control(subject, twice)
    # Kafka lets an unexpected exception out, with half of the work done.
    expected = UNKNOWN_SERVER_ERROR if subject.name == KAFKA else NONE
    assert (error, set(partition_errors)) == (expected, {expected})
    if subject.name == OURS:
        assert send_control(subject, once) == (NONE, [STALE_CONTROLLER_EPOCH])
    subject.check_good_requests()
