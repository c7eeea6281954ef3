"""The channel to one broker: order, one in flight, patience, and what is told again."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.controller_channels import (
    OWED_BACKOFF_MS,
    RETRY_BACKOFF_MS,
    ControllerChannels,
    ControlRequestAnswered,
    ControlRequestUnanswered,
)
from barnabas.broker.deadlines import Deadlines
from barnabas.broker.event_stream import EventStream
from barnabas.broker.links import LinkState
from barnabas.core.controller.request_batch import SendLeaderAndIsr
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas.formats.wire.generated.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaResponse,
)
from barnabas.formats.wire.generated.update_metadata import UpdateMetadataResponse
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, shown, tp
from tests.worlds.store_world import events_of


class FakeLink:
    """A connection whose requests a test sees and answers."""

    def __init__(self, name: str, host: str, port: int, client_id: str) -> None:
        self.name, self.address, self.client_id = name, (host, port), client_id
        self.state = LinkState.OPEN
        self.close_reason = ""
        self.sent: list[Any] = []

    def request(self, api_key, version, body, then, *, timeout_ms: int, now_ms: int) -> None:
        self.sent.append(SimpleNamespace(
            api=api_key, version=version, body=body, then=then, timeout_ms=timeout_ms))  # fmt: skip

    def close(self) -> None:
        self.state = LinkState.CLOSED

    def answer(self, response: object, now_ms: int = 0) -> None:
        self.sent[-1].then(response, now_ms)

    def break_off(self, reason: str = "reset", now_ms: int = 0) -> None:
        self.state = LinkState.CLOSED
        self.close_reason = reason
        self.sent[-1].then(None, now_ms)


class Fixture:
    """Channels of controller 7 to the brokers of a cluster."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.links: list[FakeLink] = []
        self.answers: list[tuple[str, ErrorCode, dict]] = []
        self.broker: Any = SimpleNamespace(
            config=SimpleNamespace(
                inter_broker_listener_name="PLAINTEXT", controller_socket_timeout_ms=30_000
            ),
            broker_id=BrokerId(7),
            links=SimpleNamespace(open=self._open),
            deadlines=Deadlines(),
            events=EventStream(),
            now_ms=0,
            told=[],
        )
        self.broker.events.subscribe(lambda event, _: self.broker.told.append(event))
        self.channels = ControllerChannels(self.broker, self.cluster.context, self._on_answer)
        for peer in self.cluster.context.image.brokers.values():
            self.channels.open(peer)

    def _open(self, name: str, host: str, port: int, *, client_id: str) -> FakeLink:
        self.links.append(FakeLink(name, host, port, client_id))
        return self.links[-1]

    def _on_answer(self, request, error, partition_errors, now_ms) -> None:
        self.answers.append((type(request).__name__, error, partition_errors))

    def work(self, *broker_ids: int) -> None:
        """Send what the cluster's controller released to these brokers."""
        for request in self.cluster.requests:
            if request.broker_id in broker_ids:
                self.channels.send(request, 0)
        self.cluster.clear()

    def tick(self, now_ms: int) -> None:
        self.broker.now_ms = now_ms
        self.broker.deadlines.run_due(now_ms)


@pytest.fixture
def fixture() -> Fixture:
    fixture = Fixture()
    fixture.cluster.create_topic("t", [2, 3], [3, 2])
    fixture.cluster.run()
    return fixture


def leader_and_isr_answer(request: Any, *errors: ErrorCode) -> LeaderAndIsrResponse:
    (topic,) = request.body.topic_states
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                topic_id=topic.topic_id,
                partition_errors=[
                    LeaderAndIsrPartitionError(partition_index=number, error_code=error)
                    for number, error in enumerate(errors)
                ],
            )
        ]
    )


@behaviour("Q5", "K7")
def test_one_in_flight_in_the_order_of_a_flush(fixture: Fixture):
    fixture.work(2)
    (link,) = fixture.links
    assert (link.address, link.client_id) == (("localhost", 9002), "7")
    (first,) = link.sent
    assert (first.api, first.version, first.timeout_ms) == (ApiKey.LEADER_AND_ISR, 7, 30_000)
    body = first.body
    assert (body.controller_id, body.controller_epoch, body.type) == (7, 1, 0)
    assert body.is_k_raft_controller is False
    assert body.broker_epoch == fixture.cluster.context.image.brokers[2].epoch
    (topic,) = body.topic_states
    assert topic.topic_name == "t"
    assert topic.topic_id == fixture.cluster.context.image.topic_id("t")
    state = topic.partition_states[0]
    assert (state.partition_index, state.leader, state.isr, state.replicas) == (
        0,
        2,
        [2, 3],
        [2, 3],
    )
    assert (state.is_new, state.leader_epoch, state.partition_epoch) == (True, 0, 0)
    assert [(one.broker_id, one.host_name, one.port) for one in body.live_leaders] == [
        (2, "localhost", 9002), (3, "localhost", 9003),
    ]  # fmt: skip
    link.answer(leader_and_isr_answer(first, ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH))
    assert [one.api for one in link.sent] == [ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA]
    assert link.sent[1].version == 8
    (metadata,) = link.sent[1].body.topic_states
    assert [one.offline_replicas for one in metadata.partition_states] == [[], []]
    endpoint = link.sent[1].body.live_brokers[0].endpoints[0]
    assert (endpoint.listener, endpoint.security_protocol) == ("PLAINTEXT", 0)
    link.answer(UpdateMetadataResponse())
    assert fixture.answers == [
        ("SendLeaderAndIsr", ErrorCode.NONE,
         {tp("t"): ErrorCode.NONE, tp("t", 1): ErrorCode.STALE_CONTROLLER_EPOCH}),
        ("SendUpdateMetadata", ErrorCode.NONE, {}),
    ]  # fmt: skip


@behaviour("Q7")
def test_a_stale_epoch_of_a_partition_is_not_told_as_an_error(fixture: Fixture):
    fixture.work(2)
    (link,) = fixture.links
    link.answer(
        leader_and_isr_answer(
            link.sent[0], ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR
        )
    )
    (answered,) = events_of(fixture.broker, ControlRequestAnswered)
    assert answered.failed_partitions == ((tp("t", 1), ErrorCode.KAFKA_STORAGE_ERROR),)


@behaviour("Q9")
def test_no_answer_means_the_same_again_over_a_new_connection_for_ever(fixture: Fixture):
    fixture.work(2)
    now_ms = 0
    for attempt in range(1, 6):
        assert len(fixture.links) == attempt
        link = fixture.links[-1]
        assert [one.api for one in link.sent] == [ApiKey.LEADER_AND_ISR]
        link.break_off("timed out", now_ms)
        fixture.tick(now_ms + RETRY_BACKOFF_MS - 1)
        assert len(fixture.links) == attempt, "it waits before it tries again"
        now_ms += RETRY_BACKOFF_MS
        fixture.tick(now_ms)
    assert len(events_of(fixture.broker, ControlRequestUnanswered)) == 5
    link = fixture.links[-1]
    link.answer(leader_and_isr_answer(link.sent[0], ErrorCode.NONE, ErrorCode.NONE), now_ms)
    assert [one.api for one in link.sent] == [ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA]


@behaviour("Q9", "Q10")
def test_with_the_broker_goes_what_it_was_not_told(fixture: Fixture):
    fixture.work(2)
    (link,) = fixture.links
    link.break_off()
    fixture.channels.close(BrokerId(2))
    fixture.tick(10 * RETRY_BACKOFF_MS)
    assert len(fixture.links) == 1
    fixture.cluster.delete("t")
    fixture.work(2)
    assert len(fixture.links) == 1


@behaviour("N12")
def test_a_bounced_broker_gets_a_new_channel_and_nothing_of_the_old(fixture: Fixture):
    fixture.work(2)
    (old,) = fixture.links
    fixture.cluster.bounce(2)
    fixture.cluster.run()
    fixture.channels.open(fixture.cluster.context.image.brokers[2])
    assert old.state is LinkState.CLOSED
    old.sent[0].then(leader_and_isr_answer(old.sent[0], ErrorCode.NONE), 0)
    assert fixture.answers == []
    fixture.work(2)
    new = fixture.links[-1]
    assert new is not old
    assert new.sent[0].body.broker_epoch == fixture.cluster.context.image.brokers[2].epoch


@behaviour("Q6", "N1")
def test_a_controller_that_resigned_sends_nothing(fixture: Fixture):
    fixture.work(2, 3)
    fixture.links[0].break_off()
    fixture.channels.close_all()
    fixture.tick(1_000_000)
    assert len(fixture.links) == 2
    assert all(link.state is LinkState.CLOSED for link in fixture.links)
    fixture.links[1].sent[0].then(None, 0)
    assert len(fixture.links) == 2
    fixture.channels.send(_any_request(fixture), 0)
    assert len(fixture.links) == 2


def _any_request(fixture: Fixture):
    fixture.cluster.delete("t")
    return next(one for one in fixture.cluster.requests if one.broker_id == 2)


@behaviour("R4")
def test_a_request_that_was_refused_as_a_whole_is_told_again_ever_more_slowly(fixture: Fixture):
    fixture.work(2)
    (link,) = fixture.links
    oops = LeaderAndIsrResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    link.answer(oops, 0)
    link.answer(UpdateMetadataResponse(), 0)
    now_ms, pause_ms = 0, OWED_BACKOFF_MS
    for _ in range(4):
        sent = len(link.sent)
        fixture.tick(now_ms + pause_ms - 1)
        assert len(link.sent) == sent
        now_ms += pause_ms
        fixture.tick(now_ms)
        assert link.sent[-1].api is ApiKey.LEADER_AND_ISR
        assert link.sent[-1].body.topic_states[0].partition_states[0].is_new
        link.answer(oops, now_ms)
        pause_ms *= 2
    fixture.tick(now_ms + pause_ms)
    link.answer(leader_and_isr_answer(link.sent[-1], ErrorCode.NONE, ErrorCode.NONE))
    sent = len(link.sent)
    fixture.tick(now_ms + 1_000_000)
    assert len(link.sent) == sent


@behaviour("Q8")
def test_answers_to_a_deletion(fixture: Fixture):
    fixture.cluster.clear()
    fixture.cluster.silent.update({2, 3})
    fixture.cluster.delete("t")
    fixture.work(2)
    (link,) = fixture.links
    link.answer(UpdateMetadataResponse())
    assert (link.sent[-1].api, link.sent[-1].version) == (ApiKey.STOP_REPLICA, 4)
    (topic,) = link.sent[-1].body.topic_states
    stopped = [(p.partition_index, p.leader_epoch, p.delete_partition)
               for p in topic.partition_states]  # fmt: skip
    assert stopped == [(0, -2, False), (1, -2, False)]
    link.answer(
        StopReplicaResponse(
            partition_errors=[
                StopReplicaPartitionError(topic_name="t", partition_index=0, error_code=0),
                StopReplicaPartitionError(topic_name="t", partition_index=1, error_code=56),
                StopReplicaPartitionError(topic_name="stranger", partition_index=1, error_code=56),
                StopReplicaPartitionError(topic_name="t", partition_index=1, error_code=9999),
            ]
        )
    )
    assert fixture.answers[-1] == (
        "SendStopReplica",
        ErrorCode.NONE,
        {tp("t"): ErrorCode.NONE, tp("t", 1): ErrorCode.UNKNOWN_SERVER_ERROR},
    )


def test_a_broker_without_a_listener_for_brokers_is_tried_until_it_has_one(fixture: Fixture):
    fixture.broker.config.inter_broker_listener_name = "INTERNAL"
    fixture.work(2)
    assert fixture.links == []
    assert "no listener" in events_of(fixture.broker, ControlRequestUnanswered)[0].reason
    fixture.broker.config.inter_broker_listener_name = "PLAINTEXT"
    fixture.tick(RETRY_BACKOFF_MS)
    assert len(fixture.links) == 1


def test_a_broker_that_listens_elsewhere_is_found_there(fixture: Fixture):
    fixture.work(2)
    fixture.cluster.kill(2)
    peer = fixture.cluster.context.image.brokers[BrokerId(2)]
    moved = peer.registration.listeners[0]._replace(host="elsewhere", port=1)
    registration = type(peer.registration)((moved,), 0)
    fixture.channels.open(type(peer)(peer.broker_id, peer.epoch, registration))
    fixture.links[0].break_off()
    fixture.tick(RETRY_BACKOFF_MS)
    assert fixture.links[1].address == ("elsewhere", 1)


def test_a_request_for_an_epoch_that_is_over_is_dropped(fixture: Fixture):
    request = next(one for one in fixture.cluster.requests if isinstance(one, SendLeaderAndIsr))
    stale = type(request)(
        request.broker_id, type(request.broker_epoch)(0), *(
            getattr(request, name) for name in (
                "controller_epoch", "entries", "topic_ids", "live_leaders")))  # fmt: skip
    fixture.channels.send(stale, 0)
    assert fixture.links == []
    assert shown(request)[0] == "LeaderAndIsr"
