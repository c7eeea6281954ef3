"""What the owner of a broker says about its groups, and the limits that are not his to set."""

from dataclasses import dataclass
from typing import Final

GROUP_PROTOCOLS_FACTOR: Final = 16
"""All that the members of a group tell of themselves, in messages of the greatest size."""

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long the first join of a member may wait; its client gave up long before."""

REBALANCE_RETRY_MIN_MS: Final = 100
"""Before a rebalance that nobody joined is looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Kafka's keys stand beside the fields; what has none is a limit that Kafka does not have."""

    session_timeout_min_ms: int = 6_000
    """group.min.session.timeout.ms"""
    session_timeout_max_ms: int = 1_800_000
    """group.max.session.timeout.ms"""
    members_max: int = 2**31 - 1
    """group.max.size"""
    initial_delay_ms: int = 3_000
    """group.initial.rebalance.delay.ms"""
    offset_metadata_length_max: int = 4_096
    """offset.metadata.max.bytes, which counts UTF-16 units"""
    offsets_retention_ms: int = 10_080 * 60_000
    """offsets.retention.minutes"""
    expiry_interval_ms: int = 600_000
    """offsets.retention.check.interval.ms"""
    message_size_max: int = 1_048_588
    """max.message.bytes of the topic"""
    groups_max: int = 100_000
    """Of one shard; more are told that the coordinator is not available."""
    pending_members_max: int = 10_000
    """Ids of one group that were given out and not used yet."""
    offsets_max: int = 250_000
    """Of one group."""
