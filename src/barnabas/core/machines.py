"""All state machines of the system; code, generated pages and tests read this list."""

from typing import Any, Final

from barnabas.core.controller.partition_states import PARTITION
from barnabas.core.controller.replica_states import REPLICA
from barnabas.core.coordinator.group.group_states import GROUP
from barnabas.core.replication.follower_states import FOLLOWER
from barnabas.model.transitions import TransitionTable

MACHINES: Final[tuple[TransitionTable[Any], ...]] = (REPLICA, PARTITION, FOLLOWER, GROUP)
