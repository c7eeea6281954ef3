"""The log of a broker process: a reader of its event stream that writes lines."""

import sys
import traceback
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime

from barnabas.broker.event_stream import (
    ConnectionRefused,
    ConnectionsTurnedAway,
    Event,
    RequestFailed,
)

Line = Callable[[str, str], None]


class EventLog:
    """Writes what people running a broker want to know; `is_verbose` writes everything."""

    def __init__(self, *, is_verbose: bool) -> None:
        self._is_verbose = is_verbose

    def read(self, event: Event, now_ms: int) -> None:
        """Take one event of the stream."""
        match event:
            case ConnectionRefused(connection, peer, reason):
                self._line("WARN", f"connection {connection} of {peer} closed: {reason}")
            case ConnectionsTurnedAway(count):
                self._line("WARN", f"{count} connections closed at once: there are too many")
            case RequestFailed(connection, api_key, api_version, story, bug):
                self._line(
                    "ERROR",
                    f"request {api_key} version {api_version} of connection {connection} met a bug"
                    f" and was closed: {story}",
                )
                if self._is_verbose:
                    traceback.print_exception(bug, file=sys.stderr)
            case _ if self._is_verbose:
                self._line("DEBUG", _told(event))
            case _:
                pass

    def _line(self, level: str, text: str) -> None:
        moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        print(f"[{moment}] {level} {text}", file=sys.stderr, flush=True)


def _told(event: Event) -> str:
    if not is_dataclass(event):
        return repr(event)
    values = [f"{field.name}={getattr(event, field.name)!r}" for field in fields(event)]
    return f"{type(event).__name__} {' '.join(values)}"
