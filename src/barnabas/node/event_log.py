"""The log of a broker process: a reader of its event stream that writes lines."""

import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime

from barnabas.broker.administration import CreateTopicPolicyFailed
from barnabas.broker.broker_configs import BrokerConfigChanged, BrokerConfigUnusable
from barnabas.broker.broker_logs import LogComplaint, LogDirectoryLost
from barnabas.broker.controller import BecameController, ControllerFailed, ControllerResigned
from barnabas.broker.controller_channels import ControlRequestAnswered, ControlRequestUnanswered
from barnabas.broker.deadlines import Deadlines
from barnabas.broker.dynamic_configs import ConfigChangeIgnored, ConfigChangeUnreadable
from barnabas.broker.event_stream import (
    ConnectionRefused,
    ConnectionsTurnedAway,
    Event,
    RequestFailed,
)
from barnabas.broker.groups import GroupsLoaded
from barnabas.broker.leader_fetcher import LogTruncated
from barnabas.broker.producer_ids import ProducerIdsUnavailable
from barnabas.broker.registration import SessionLost
from barnabas.broker.topic_configs import TopicConfigUnreadable, TopicSettingUnhonoured
from barnabas.model.ids import BrokerId
from barnabas.node.repeated_lines import Kind, Line, RepeatedLines
from barnabas.storage.recovery import SegmentRecovered

PROGRESS_MS = 10_000
TERMINAL_PROGRESS_MS = 1_000

_BUGS = (RequestFailed, ControllerFailed, CreateTopicPolicyFailed)
"""Events with an exception, whose traceback is for the verbose."""
REFUSED = Kind("refused connections", 5, 10_000)
TURNED_AWAY = Kind("connections turned away", 1, 10_000)
TOPICS_NAMED_MAX = 10


class EventLog:
    """Writes what people running a broker want to know; `is_verbose` writes everything.

    What may come by the hundred is counted instead, on the timers of the loop.
    """

    def __init__(
        self,
        timers: Deadlines,
        *,
        is_verbose: bool,
        write: Callable[[str], object] = sys.stderr.write,
        is_terminal: bool | None = None,
    ) -> None:
        self._is_verbose = is_verbose
        self._write = write
        is_shown_live = sys.stderr.isatty() if is_terminal is None else is_terminal
        self._progress_ms = TERMINAL_PROGRESS_MS if is_shown_live else PROGRESS_MS
        self._progress_due_ms: int | None = None
        self._recovered_bytes = 0
        self._repeated = RepeatedLines(timers, self._put)
        self._unanswered: dict[BrokerId, int] = {}
        """How often each silent broker of the cluster was sent its request, while we control."""

    def read(self, event: Event, now_ms: int) -> None:
        """Take one event of the stream."""
        line = self._progress(event, now_ms) or self._answers(event)
        line = line or _from_outside(event) or _from_inside(event)
        if line is None and self._is_verbose:
            line = Line("DEBUG", _told(event))
        if line is None:
            return
        kind = None if self._is_verbose else _kind(event)
        if kind is not None:
            count = event.count if isinstance(event, ConnectionsTurnedAway) else 1
            self._repeated.note(kind, line, now_ms, count)
            return
        self._put(line, event)

    def close(self) -> None:
        """Write what was counted and not told yet."""
        self._repeated.close()

    def _put(self, line: Line, event: Event = None) -> None:
        moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        lines = f"[{moment}] {line.level} {line.text}\n"
        bug = event.bug if self._is_verbose and isinstance(event, _BUGS) else None
        if bug is not None:
            lines += "".join(traceback.format_exception(bug))
        # A log that nobody reads any more must not stop a broker.
        with suppress(OSError):
            self._write(lines)

    def _answers(self, event: Event) -> Line | None:
        """A broker that was silent takes the controller's requests again."""
        match event:
            case ControlRequestUnanswered(broker_id, _, _):
                self._unanswered[broker_id] = self._unanswered.get(broker_id, 0) + 1
            case ControllerResigned():
                self._unanswered.clear()
            case ControlRequestAnswered(broker_id, api, _, _) if broker_id in self._unanswered:
                count = self._unanswered.pop(broker_id)
                self._repeated.forget(_silence_of(broker_id))
                times = "one time" if count == 1 else f"{count} times"
                return Line("INFO", f"broker {broker_id} answers: {api} was sent {times} in vain")
            case _:
                pass
        return None

    def _progress(self, event: Event, now_ms: int) -> Line | None:
        """Recovery may take minutes: what was cut is told, the rest now and then."""
        if not isinstance(event, SegmentRecovered):
            return None
        self._recovered_bytes += event.size_bytes
        place = f"{event.topic_partition}, segment {event.segment_number} of {event.segment_count}"
        if event.complaint:
            return Line("WARN", f"recovery cut {place}: {event.complaint}")
        if self._progress_due_ms is None:
            self._progress_due_ms = now_ms + self._progress_ms
        if now_ms < self._progress_due_ms:
            return None
        self._progress_due_ms = now_ms + self._progress_ms
        megabytes = self._recovered_bytes / 1e6
        return Line("INFO", f"recovery: {megabytes:,.0f} MB read; at {place}")


def _kind(event: Event) -> Kind | None:
    """What the event is counted as where it may come by the hundred."""
    match event:
        case ConnectionRefused():
            return REFUSED
        case ConnectionsTurnedAway():
            return TURNED_AWAY
        case ControlRequestUnanswered(broker_id, _, _):
            return _silence_of(broker_id)
        case ControlRequestAnswered(broker_id, _, _, _):
            return Kind(f"answers of broker {broker_id}", 1, 30_000)
        case _:
            return None


def _silence_of(broker_id: BrokerId) -> Kind:
    return Kind(f"silence of broker {broker_id}", 1, 30_000)


def _from_outside(event: Event) -> Line | None:
    """What clients, the store and other brokers did to this one."""
    match event:
        case ConnectionRefused(connection, peer, reason):
            return Line("WARN", f"connection {connection} of {peer} closed: {reason}")
        case ConnectionsTurnedAway(count):
            closed = "a connection was" if count == 1 else f"{count} connections were"
            limits = "max.connections, max.connections.per.ip or the files this process may open"
            return Line("WARN", f"{closed} closed at once, too many for {limits}")
        case SessionLost():
            return Line("WARN", "the session with the metadata store expired; registering anew")
        case ConfigChangeIgnored(entity_path):
            return Line("WARN", f"a change of {entity_path} takes effect at the next start alone")
        case GroupsLoaded(partition, _, _, str() as reason):
            return Line("WARN", f"groups of partition {partition}, as far as they go: {reason}")
        case BrokerConfigUnusable(problem):
            return Line("WARN", f"changed settings of this broker are passed over: {problem}")
        case ConfigChangeUnreadable(path, problem):
            return Line("WARN", f"{path} cannot be read and is passed over: {problem}")
        case TopicConfigUnreadable(topic, problem):
            return Line(
                "WARN",
                f"the settings of {topic} cannot be read: ours hold, and nothing of it is deleted "
                f"until somebody sets them anew: {problem}",
            )
        case TopicSettingUnhonoured(setting, reason, topics):
            names = ", ".join(topics[:TOPICS_NAMED_MAX])
            more = len(topics) - TOPICS_NAMED_MAX
            names += f" and {more} more" if more > 0 else ""
            return Line("WARN", f"{setting} of topic {names}: {reason}")
        case ControlRequestUnanswered(broker_id, api, reason):
            return Line("WARN", f"{api} to broker {broker_id} is sent again: {reason}")
        case ProducerIdsUnavailable(reason):
            return Line("WARN", f"no producer ids could be claimed: {reason}")
        case _:
            return None


def _from_inside(event: Event) -> Line | None:
    """What this broker became, lost, or did wrong."""
    match event:
        case BrokerConfigChanged(changed):
            told = ", ".join(f"{name}={text}" for name, text in changed) or "none are left"
            return Line("INFO", f"settings of this broker changed at run time: {told}")
        case BecameController(epoch):
            return Line("INFO", f"this broker is the controller, epoch {epoch}")
        case ControllerResigned(epoch, reason):
            return Line("INFO", f"the controller of epoch {epoch} resigned: {reason}")
        case ControllerFailed(epoch, story, _):
            return Line("ERROR", f"the controller of epoch {epoch} met a bug and resigned: {story}")
        case CreateTopicPolicyFailed(topic, problem):
            return Line("ERROR", f"the policy for new topics failed at {topic}: {problem}")
        case RequestFailed(connection, api_key, api_version, story, _):
            request = f"request {api_key} version {api_version} of connection {connection}"
            return Line("ERROR", f"{request} met a bug and was closed: {story}")
        case LogDirectoryLost(path, reason, partitions):
            replicas = "1 replica" if len(partitions) == 1 else f"{len(partitions)} replicas"
            return Line("ERROR", f"{path} is offline with its {replicas}: {reason}")
        case LogComplaint(complaint):
            return Line("WARN", complaint)
        case LogTruncated(partition, from_offset, to_offset, _):
            told = f"{partition} was cut from offset {from_offset} to {to_offset}"
            return Line("WARN", f"{told}, to agree with its leader")
        case _:
            return None


def _told(event: Event) -> str:
    if not is_dataclass(event):
        return repr(event)
    values = [f"{field.name}={getattr(event, field.name)!r}" for field in fields(event)]
    return f"{type(event).__name__} {' '.join(values)}"
