"""The counters that fence what is stale, and their reserved values (row K1)."""

from typing import NewType

LeaderEpoch = NewType("LeaderEpoch", int)
"""Grows with every election or replica change of one partition."""

PartitionEpoch = NewType("PartitionEpoch", int)
"""The znode version of a partition's state."""

ControllerEpoch = NewType("ControllerEpoch", int)
"""The text of /controller_epoch; grows with every controller election."""

BrokerEpoch = NewType("BrokerEpoch", int)
"""The czxid of a broker's registration; grows with every registration."""

NO_EPOCH = -1
EPOCH_DURING_DELETE = -2
"""The leader epoch in StopReplica for a topic being deleted, which has none of its own (D12)."""

INITIAL_LEADER_EPOCH = LeaderEpoch(0)
INITIAL_PARTITION_EPOCH = PartitionEpoch(0)
INITIAL_CONTROLLER_EPOCH = ControllerEpoch(0)
"""What /controller_epoch holds before the first controller, which writes 1."""
