"""When to ask again, and after how long: Kafka's retriable error codes, back-off with jitter."""

import random
from typing import Final, NamedTuple

from barnabas.model.error_codes import ErrorCode

RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    }
)
"""What Kafka's clients ask again for; a conformance test reads the same list from its jar."""

JITTER = 0.2


class RetryPolicy(NamedTuple):
    """How long an operation goes on; Kafka's names are in the comments of its clients."""

    timeout_ms: int = 30_000
    """Of one operation with all its tries."""
    request_timeout_ms: int = 30_000
    backoff_ms: int = 100
    backoff_max_ms: int = 1_000
    unreachable_tries: int = 3
    """How often an address is tried where nobody listens before that is the answer."""

    def delay_ms(self, tries: int, chance: random.Random) -> int:
        """How long to wait after that many tries."""
        delay: int = min(self.backoff_max_ms, self.backoff_ms << min(tries - 1, 16))
        return int(delay * chance.uniform(1 - JITTER, 1 + JITTER))


DEFAULT_POLICY = RetryPolicy()
