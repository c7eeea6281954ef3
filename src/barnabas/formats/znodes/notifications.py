"""Sequential nodes that tell the controller of isr changes and of failed log directories."""

from dataclasses import dataclass

from barnabas.formats.znodes.json_fields import parse_object, to_json
from barnabas.model.errors import DecodeError
from barnabas.model.ids import BrokerId

ISR_CHANGES_PATH = "/isr_change_notification"
ISR_CHANGE_PREFIX = "/isr_change_notification/isr_change_"
"""A sequential create completes it; its content is written by `admin.partitions_to_bytes`."""
LOG_DIR_EVENTS_PATH = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = "/log_dir_event_notification/log_dir_event_"
"""A sequential create completes it."""

_SEQUENCE_DIGITS = 10
_VERSION = 1
_LOG_DIR_FAILED = 1


@dataclass(frozen=True, slots=True)
class LogDirFailure:
    """A broker lost a log directory; which one it does not say."""

    broker_id: BrokerId

    def to_bytes(self) -> bytes:
        return to_json({"version": _VERSION, "broker": self.broker_id, "event": _LOG_DIR_FAILED})

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "LogDirFailure":
        return cls(BrokerId(parse_object(path, data).integer("broker")))


def sequence_number(name: str) -> int:
    """The number that completed a sequential node's name or path."""
    digits = name[-_SEQUENCE_DIGITS:]
    if len(digits) < _SEQUENCE_DIGITS or not (digits.isascii() and digits.isdigit()):
        raise DecodeError(f"{name}: expected a name that ends with {_SEQUENCE_DIGITS} digits")
    return int(digits)
