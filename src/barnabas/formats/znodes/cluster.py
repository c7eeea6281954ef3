"""/cluster/id, and the nodes without content that every broker makes at its start."""

from dataclasses import dataclass

from barnabas.formats.znodes.json_fields import parse_object, to_json

CLUSTER_ID_PATH = "/cluster/id"

PERSISTENT_PATHS = (
    "/consumers",
    "/brokers/ids",
    "/brokers/topics",
    "/config/changes",
    "/admin/delete_topics",
    "/brokers/seqid",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)
"""In the order in which a starting broker makes those that are missing, with their parents."""


@dataclass(frozen=True, slots=True)
class ClusterId:
    """The name that a cluster keeps for ever."""

    cluster_id: str

    def to_bytes(self) -> bytes:
        return to_json({"version": "1", "id": self.cluster_id})

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "ClusterId":
        return cls(parse_object(path, data).text("id"))


def parents_of(path: str) -> tuple[str, ...]:
    """The paths above `path`, outermost first: what must be there before it is made."""
    steps = path.split("/")[1:-1]
    return tuple("/" + "/".join(steps[: depth + 1]) for depth in range(len(steps)))
