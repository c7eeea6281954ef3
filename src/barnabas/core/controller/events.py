"""What happened, as the controller is told: one event is dealt with before the next one comes."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.formats.znodes.admin import DELETE_TOPICS_PATH
from barnabas.formats.znodes.brokers import BROKER_IDS_PATH
from barnabas.formats.znodes.topics import TOPICS_PATH
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """This broker won the election; always the first event."""


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """Brokers have registered or are gone."""


@dataclass(frozen=True, slots=True)
class BrokerModified:
    """A broker wrote its registration anew."""

    broker_id: BrokerId


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Topics have been created or are gone."""


@dataclass(frozen=True, slots=True)
class TopicModified:
    """A topic's replicas or partitions were written."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletionRequested:
    """Markers of topics to be deleted have come or gone."""


@dataclass(frozen=True, slots=True)
class UncleanElectionEnabled:
    """A topic's setting now allows a leader that lacks records."""

    topic: str


@dataclass(frozen=True, slots=True, eq=False)
class LeaderAndIsrAnswered:
    """A broker answered LeaderAndIsr without a top-level error; no answer is like another."""

    broker_id: BrokerId
    partition_errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True, eq=False)
class StopReplicaAnswered:
    """A broker answered for the replicas that it was to delete; no answer is like another.

    An error of the whole request stands for each of them.
    """

    broker_id: BrokerId
    deletion_errors: Mapping[TopicPartition, ErrorCode]


ControllerEvent = (
    ControllerElected
    | BrokersChanged
    | BrokerModified
    | TopicsChanged
    | TopicModified
    | TopicDeletionRequested
    | UncleanElectionEnabled
    | LeaderAndIsrAnswered
    | StopReplicaAnswered
)


def event_of_watch(path: str) -> ControllerEvent | None:
    """What a fired watch on a path means to the controller; None if it watches no such path."""
    if path == BROKER_IDS_PATH:
        return BrokersChanged()
    if path == TOPICS_PATH:
        return TopicsChanged()
    if path == DELETE_TOPICS_PATH:
        return TopicDeletionRequested()
    parent, _, name = path.rpartition("/")
    if parent == TOPICS_PATH:
        return TopicModified(name)
    if parent == BROKER_IDS_PATH and name.isdecimal():
        return BrokerModified(BrokerId(int(name)))
    return None
