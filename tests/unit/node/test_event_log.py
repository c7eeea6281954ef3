"""The lines a broker process writes about what happened."""

import pytest

from barnabas.broker.administration import CreateTopicPolicyFailed
from barnabas.broker.broker_logs import LogComplaint, LogDirectoryLost
from barnabas.broker.controller import BecameController
from barnabas.broker.event_stream import BrokerStarted, ConnectionRefused, Event, RequestFailed
from barnabas.model.epochs import ControllerEpoch
from barnabas.model.ids import TopicPartition
from barnabas.node.event_log import EventLog
from barnabas.storage.recovery import SegmentRecovered


def _lines(*events: tuple[Event, int], is_verbose: bool = False) -> list[str]:
    """What is written about events and their times, without the time of day."""
    written: list[str] = []
    log = EventLog(is_verbose=is_verbose, write=written.append, is_terminal=False)
    for event, now_ms in events:
        log.read(event, now_ms)
    return [line.partition("] ")[2].rstrip("\n") for line in written]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (ConnectionRefused(7, "10.0.0.1", "bad"), "WARN connection 7 of 10.0.0.1 closed: bad"),
        (LogComplaint("an index was rebuilt"), "WARN an index was rebuilt"),
        (BecameController(ControllerEpoch(3)), "INFO this broker is the controller, epoch 3"),
        (
            LogDirectoryLost("/d", "EIO", (TopicPartition("t", 0),), True),
            "ERROR /d and its 1 replicas are lost: EIO",
        ),
        (
            RequestFailed(5, 0, 9, "a story", ValueError("x")),
            "ERROR request 0 version 9 of connection 5 met a bug and was closed: a story",
        ),
        (
            CreateTopicPolicyFailed("t", "KeyError: 'x'"),
            "ERROR the policy for new topics failed at t: KeyError: 'x'",
        ),
    ],
)
def test_what_people_must_know_is_written(event: Event, line: str):
    assert _lines((event, 0)) == [line]


def test_the_rest_is_written_on_demand_and_bugs_with_their_trace():
    started = (BrokerStarted(1), 0)
    assert _lines(started) == []
    assert _lines(started, is_verbose=True) == ["DEBUG BrokerStarted broker_id=1"]
    failed = (RequestFailed(5, 0, 9, "a story", ValueError("deep down")), 0)
    [told] = _lines(failed, is_verbose=True)
    assert "met a bug" in told
    assert "ValueError: deep down" in told


def test_a_log_that_nobody_reads_stops_nobody():
    def write(text: str) -> None:
        raise BrokenPipeError

    EventLog(is_verbose=True, write=write, is_terminal=False).read(BrokerStarted(1), 0)


def test_recovery_tells_cuts_at_once_and_progress_every_ten_seconds():
    def segment(number: int, complaint: str = "") -> SegmentRecovered:
        return SegmentRecovered(TopicPartition("t", 0), 0, 5_000_000, number, 9, complaint)

    lines = _lines(
        (segment(1), 0),
        (segment(2), 9_999),
        (segment(3, "bad checksum"), 9_999),
        (segment(4), 10_000),
        (segment(5), 19_999),
        (segment(6), 20_000),
    )
    assert lines == [
        "WARN recovery cut t-0, segment 3 of 9: bad checksum",
        "INFO recovery: 20 MB read; at t-0, segment 4 of 9",
        "INFO recovery: 30 MB read; at t-0, segment 6 of 9",
    ]
