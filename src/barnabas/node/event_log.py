"""The log of a broker process: a reader of its event stream that writes lines."""

import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from barnabas.broker.administration import CreateTopicPolicyFailed
from barnabas.broker.broker_logs import LogComplaint, LogDirectoryLost
from barnabas.broker.controller import BecameController, ControllerFailed, ControllerResigned
from barnabas.broker.controller_channels import ControlRequestUnanswered
from barnabas.broker.dynamic_configs import ConfigChangeIgnored, ConfigChangeUnreadable
from barnabas.broker.event_stream import (
    ConnectionRefused,
    ConnectionsTurnedAway,
    Event,
    RequestFailed,
)
from barnabas.broker.leader_fetcher import LogTruncated
from barnabas.broker.producer_ids import ProducerIdsUnavailable
from barnabas.broker.registration import SessionLost
from barnabas.broker.topic_configs import TopicConfigUnreadable
from barnabas.storage.recovery import SegmentRecovered

PROGRESS_MS = 10_000
TERMINAL_PROGRESS_MS = 1_000


_BUGS = (RequestFailed, ControllerFailed, CreateTopicPolicyFailed)
"""Events with an exception, whose traceback is for the verbose."""


class Line(NamedTuple):
    """A line of the log before it has its time."""

    level: str
    text: str


class EventLog:
    """Writes what people running a broker want to know; `is_verbose` writes everything."""

    def __init__(
        self,
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

    def read(self, event: Event, now_ms: int) -> None:
        """Take one event of the stream."""
        line = self._progress(event, now_ms) or _from_outside(event) or _from_inside(event)
        if line is None and self._is_verbose:
            line = Line("DEBUG", _told(event))
        if line is None:
            return
        moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        lines = f"[{moment}] {line.level} {line.text}\n"
        bug = event.bug if self._is_verbose and isinstance(event, _BUGS) else None
        if bug is not None:
            lines += "".join(traceback.format_exception(bug))
        # A log that nobody reads any more must not stop a broker.
        with suppress(OSError):
            self._write(lines)

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


def _from_outside(event: Event) -> Line | None:
    """What clients, the store and other brokers did to this one."""
    match event:
        case ConnectionRefused(connection, peer, reason):
            return Line("WARN", f"connection {connection} of {peer} closed: {reason}")
        case ConnectionsTurnedAway(count):
            return Line("WARN", f"{count} connections closed at once: there are too many")
        case SessionLost():
            return Line("WARN", "the session with the metadata store expired; registering anew")
        case ConfigChangeIgnored(entity_path):
            return Line("WARN", f"a change of {entity_path} takes effect at the next start alone")
        case ConfigChangeUnreadable(path, problem):
            return Line("WARN", f"{path} cannot be read and is passed over: {problem}")
        case TopicConfigUnreadable(topic, problem):
            return Line(
                "WARN",
                f"the settings of {topic} cannot be read: ours hold, and nothing of it is deleted "
                f"until somebody sets them anew: {problem}",
            )
        case ControlRequestUnanswered(broker_id, api, reason):
            return Line("WARN", f"{api} to broker {broker_id} is sent again: {reason}")
        case ProducerIdsUnavailable(reason):
            return Line("WARN", f"no producer ids could be claimed: {reason}")
        case _:
            return None


def _from_inside(event: Event) -> Line | None:
    """What this broker became, lost, or did wrong."""
    match event:
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
            return Line("ERROR", f"{path} and its {len(partitions)} replicas are lost: {reason}")
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
