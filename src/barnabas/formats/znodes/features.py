"""/feature: the finalised levels of features, which a cluster on ZooKeeper keeps empty."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.formats.znodes.json_fields import parse_object, to_json
from barnabas.model.errors import DecodeError

FEATURE_PATH = "/feature"
FEATURE_VERSION = 2


class FeatureStatus(IntEnum):
    """Whether brokers honour the levels."""

    DISABLED = 0
    ENABLED = 1


@dataclass(frozen=True, slots=True)
class FinalizedFeatures:
    """The highest level of each feature in use; read at versions 1 and 2, written at 2."""

    status: FeatureStatus
    max_version_levels: Mapping[str, int]

    def to_bytes(self) -> bytes:
        levels = {
            name: {"max_version_level": level} for name, level in self.max_version_levels.items()
        }
        return to_json({"features": levels, "version": FEATURE_VERSION, "status": int(self.status)})

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "FinalizedFeatures":
        found = parse_object(path, data)
        version = found.integer("version")
        if not 1 <= version <= FEATURE_VERSION:
            raise DecodeError(f"{path}: found version {version}, expected 1 or 2")
        status = found.integer("status")
        if status not in (FeatureStatus.DISABLED, FeatureStatus.ENABLED):
            raise DecodeError(f"{path}: found status {status}, expected 0 or 1")
        levels: dict[str, int] = {}
        features = found.object("features")
        for name in features.names():
            level = features.object(name).integer("max_version_level")
            if level < 1:
                raise DecodeError(f"{path}: found level {level} of {name}, expected 1 or more")
            levels[name] = level
        return cls(FeatureStatus(status), levels)
