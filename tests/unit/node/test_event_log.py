"""The lines a broker process writes about what happened."""

import pytest

from barnabas.broker.administration import CreateTopicPolicyFailed
from barnabas.broker.broker_logs import LogComplaint, LogDirectoryLost
from barnabas.broker.controller import BecameController
from barnabas.broker.controller_channels import ControlRequestAnswered, ControlRequestUnanswered
from barnabas.broker.deadlines import Deadlines
from barnabas.broker.event_stream import (
    BrokerStarted,
    ConnectionRefused,
    ConnectionsTurnedAway,
    Event,
    RequestFailed,
)
from barnabas.broker.groups import GroupsLoaded
from barnabas.broker.topic_configs import TopicSettingUnhonoured
from barnabas.model.epochs import ControllerEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition
from barnabas.node.event_log import EventLog
from barnabas.storage.recovery import SegmentRecovered


def _lines(*events: tuple[Event, int], is_verbose: bool = False) -> list[str]:
    """What is written about events and their times, without the time of day."""
    written: list[str] = []
    timers = Deadlines()
    log = EventLog(timers, is_verbose=is_verbose, write=written.append, is_terminal=False)
    for event, now_ms in events:
        while (due_ms := timers.next_ms()) is not None and due_ms <= now_ms:
            timers.run_due(due_ms)
        log.read(event, now_ms)
    log.close()
    return [line.partition("] ")[2].rstrip("\n") for line in written]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (ConnectionRefused(7, "10.0.0.1", "bad"), "WARN connection 7 of 10.0.0.1 closed: bad"),
        (
            GroupsLoaded(3, 1, 2, "a wrong checksum"),
            "WARN groups of partition 3, as far as they go: a wrong checksum",
        ),
        (LogComplaint("an index was rebuilt"), "WARN an index was rebuilt"),
        (BecameController(ControllerEpoch(3)), "INFO this broker is the controller, epoch 3"),
        (
            LogDirectoryLost("/d", "EIO", (TopicPartition("t", 0),), True),
            "ERROR /d is offline with its 1 replica: EIO",
        ),
        (
            LogDirectoryLost("/d", "EIO", (TopicPartition("t", 0), TopicPartition("t", 1)), True),
            "ERROR /d is offline with its 2 replicas: EIO",
        ),
        (
            TopicSettingUnhonoured("cleanup.policy=compact", "not yet", ("a", "b")),
            "WARN cleanup.policy=compact of topic a, b: not yet",
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

    EventLog(Deadlines(), is_verbose=True, write=write, is_terminal=False).read(BrokerStarted(1), 0)


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


def _unanswered(*moments_ms: int) -> list[tuple[Event, int]]:
    event = ControlRequestUnanswered(BrokerId(1), "UpdateMetadata", "ECONNREFUSED")
    return [(event, now_ms) for now_ms in moments_ms]


def test_a_silent_broker_is_told_of_once_then_twice_a_minute_and_when_it_answers():
    answered = ControlRequestAnswered(BrokerId(1), "UpdateMetadata", ErrorCode.NONE, ())
    silence = _unanswered(*range(0, 70_000, 100))
    text = "WARN UpdateMetadata to broker 1 is sent again: ECONNREFUSED"
    assert _lines(*silence, (answered, 70_000), (answered, 70_100)) == [
        text,
        f"{text} (299 more within 30 s)",
        f"{text} (300 more within 30 s)",
        "INFO broker 1 answers: UpdateMetadata was sent 700 times in vain",
    ]


def test_a_broker_that_answers_now_and_then_does_not_fill_the_log():
    answered = ControlRequestAnswered(BrokerId(1), "UpdateMetadata", ErrorCode.NONE, ())
    flapping: list[tuple[Event, int]] = []
    for now_ms in range(0, 29_000, 100):
        flapping += [*_unanswered(now_ms), (answered, now_ms + 50)]
    assert len(_lines(*flapping)) <= 3


def test_a_slow_silence_is_a_silence_all_the_same():
    answered = ControlRequestAnswered(BrokerId(1), "UpdateMetadata", ErrorCode.NONE, ())
    lines = _lines(*_unanswered(0, 60_000, 120_000), (answered, 200_000))
    assert len(lines) == 4
    assert lines[-1].endswith("was sent 3 times in vain")


def test_a_burst_of_bad_connections_is_a_few_lines_with_a_count():
    burst: list[tuple[Event, int]] = [
        (ConnectionRefused(number, "10.0.0.1", "bad"), number * 10) for number in range(300)
    ]
    later = (ConnectionRefused(999, "10.0.0.1", "bad"), 60_000)
    lines = _lines(*burst, later)
    assert lines[:5] == [f"WARN connection {n} of 10.0.0.1 closed: bad" for n in range(5)]
    assert lines[5:] == [
        "WARN connection 299 of 10.0.0.1 closed: bad (295 more within 10 s)",
        "WARN connection 999 of 10.0.0.1 closed: bad",
    ]
    assert len(_lines(*burst, is_verbose=True)) == 300


def test_connections_that_find_no_room_are_counted():
    lines = _lines(*[(ConnectionsTurnedAway(10), second * 1000) for second in range(1, 6)])
    counts = [line.partition(" (")[2] for line in lines]
    assert counts == ["", "40 more within 10 s)"]
    assert lines[0].startswith("WARN 10 connections were closed at once, too many for")
    assert "max.connections" in lines[0]


def test_many_topics_of_one_setting_are_one_line():
    topics = tuple(f"t{number}" for number in range(100))
    [line] = _lines((TopicSettingUnhonoured("cleanup.policy=compact", "not yet", topics), 0))
    assert line.endswith("t8, t9 and 90 more: not yet")
