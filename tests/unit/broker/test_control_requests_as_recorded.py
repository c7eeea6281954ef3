"""Control requests sent by hand to a real broker 3.9.2, answered here byte for byte."""

import base64
import json
from pathlib import Path

import pytest

from barnabas.formats.wire import framing
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.model.epochs import BrokerEpoch
from barnabas.model.ids import TopicId
from tests.behaviours import behaviour
from tests.worlds.virtual_world import VirtualWorld, plan

VECTORS = Path(__file__).parents[2] / "vectors" / "broker" / "control-requests.jsonl"
TOPIC_ID = TopicId(base64.urlsafe_b64decode("ROyTWiETQkqWVRhWZgauTw=="))
KEYS = {
    "LeaderAndIsr": ApiKey.LEADER_AND_ISR,
    "StopReplica": ApiKey.STOP_REPLICA,
    "UpdateMetadata": ApiKey.UPDATE_METADATA,
}


class Answered:
    """One recorded request with the answer it got there and the one it got here."""

    def __init__(self, entry: dict[str, str], answer: bytes) -> None:
        key, version = KEYS[entry["api"]], int(entry["version"])
        self.about = entry["about"]
        self.is_same = answer == bytes.fromhex(entry["response"])
        self.ours = framing.decode_response(key, version, answer)
        self.theirs = framing.decode_response(key, version, bytes.fromhex(entry["response"]))


@pytest.fixture(scope="module")
def answered() -> list[Answered]:
    """All requests in their order; broker 2 leads q-0 in epoch 0 before them."""
    world = VirtualWorld()
    world.add_broker(1)
    two = world.add_broker(2)
    world.controller_epoch = 5
    two.broker.broker_epoch = BrokerEpoch(41)
    first = {0: plan(2, 0, (2, 1), (2, 1))}
    world.tell_metadata(2, "q", TOPIC_ID, first, [1, 2])
    world.tell_leader(2, "q", TOPIC_ID, first, is_new=True)
    client = world.client(2)
    entries = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    return [Answered(e, client.call_raw(bytes.fromhex(e["request"]))) for e in entries]


def check(answered: list[Answered], *numbers: int) -> None:
    assert [
        (answered[n].about, answered[n].ours, answered[n].theirs)
        for n in numbers
        if not answered[n].is_same
    ] == []


@behaviour("L2", "S1")
def test_a_request_meant_for_an_earlier_registration_is_refused(answered: list[Answered]) -> None:
    check(answered, 3, 4, 5)


@behaviour("L2")
def test_a_later_broker_epoch_or_none_is_accepted(answered: list[Answered]) -> None:
    check(answered, 6, 7)


@behaviour("L4", "S2", "N11")
def test_an_older_controller_is_refused(answered: list[Answered]) -> None:
    check(answered, 0, 1, 2)


@behaviour("L4")
def test_a_newer_controller_is_adopted_and_a_kraft_one_is_not_obeyed(
    answered: list[Answered],
) -> None:
    check(answered, 50, 51, 52)


@behaviour("L6")
def test_another_topic_id_is_refused_and_none_is_consistent(answered: list[Answered]) -> None:
    check(answered, 13, 14, 39)


@behaviour("L7")
def test_a_newer_epoch_is_taken_up_by_assigned_replicas_alone(answered: list[Answered]) -> None:
    check(answered, 9, 17, 26, 29)


@behaviour("L8")
def test_an_older_epoch_is_stale(answered: list[Answered]) -> None:
    check(answered, 10)


@behaviour("L9")
def test_a_known_epoch_may_bring_or_take_a_topic_id_and_nothing_else(
    answered: list[Answered],
) -> None:
    check(answered, 8, 11, 15, 16, 22, 25, 27, 33, 34, 36, 37)


@behaviour("L14")
def test_an_older_partition_epoch_is_skipped_without_noting_its_leader_epoch(
    answered: list[Answered],
) -> None:
    check(answered, 12, 23, 24, 28, 29)


@behaviour("L18")
def test_a_leader_that_is_nobody_or_unknown_leaves_the_epoch_new(answered: list[Answered]) -> None:
    check(answered, 18, 19, 20, 21)


@behaviour("L5", "N10")
def test_unknown_partitions_are_created_whether_new_or_not(answered: list[Answered]) -> None:
    check(answered, 30, 31, 32, 35)


@behaviour("S4")
def test_epochs_of_a_stop_equal_and_larger_are_accepted_smaller_is_fenced(
    answered: list[Answered],
) -> None:
    check(answered, 38, 40, 41, 42, 43, 45, 47)


@behaviour("S5", "S7", "S8")
def test_stopping_what_is_not_here_is_fine_and_what_stays_is_still_known(
    answered: list[Answered],
) -> None:
    check(answered, 44, 46, 48)


@behaviour("L26")
def test_versions_that_were_recorded_have_their_own_shape(answered: list[Answered]) -> None:
    check(answered, 48, 49)


def test_every_recorded_request_got_the_recorded_answer(answered: list[Answered]) -> None:
    check(answered, *range(len(answered)))
    assert len(answered) == 53
