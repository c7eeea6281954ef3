"""/controller and /controller_epoch: who decides, and the counter that fences who did before."""

from dataclasses import dataclass

from barnabas.formats.znodes.json_fields import INT32_MAX, parse_object, to_json
from barnabas.model.epochs import ControllerEpoch
from barnabas.model.errors import DecodeError
from barnabas.model.ids import BrokerId

CONTROLLER_PATH = "/controller"
CONTROLLER_EPOCH_PATH = "/controller_epoch"

REGISTRATION_VERSION = 2


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """The broker that is the controller; read at any version, written at 2."""

    broker_id: BrokerId
    timestamp_ms: int
    kraft_controller_epoch: int = -1
    """The epoch of a KRaft controller that migrates the cluster; -1 for none."""

    def to_bytes(self) -> bytes:
        return to_json(
            {
                "version": REGISTRATION_VERSION,
                "brokerid": self.broker_id,
                "timestamp": str(self.timestamp_ms),
                "kraftControllerEpoch": self.kraft_controller_epoch,
            }
        )

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "ControllerRegistration":
        found = parse_object(path, data)
        return cls(
            broker_id=BrokerId(found.integer("brokerid")),
            timestamp_ms=found.note_ms("timestamp"),
            kraft_controller_epoch=(
                found.integer("kraftControllerEpoch") if "kraftControllerEpoch" in found else -1
            ),
        )


def epoch_to_bytes(epoch: ControllerEpoch) -> bytes:
    """The epoch as plain text."""
    return str(epoch).encode("ascii")


def epoch_from_bytes(path: str, data: bytes | None) -> ControllerEpoch:
    if data is None or not data.isdigit() or len(data) > 10 or int(data) > INT32_MAX:
        shown = data[:30] if data is not None else None
        raise DecodeError(f"{path}: found {shown!r}, expected a number of 32 bits as text")
    return ControllerEpoch(int(data))
