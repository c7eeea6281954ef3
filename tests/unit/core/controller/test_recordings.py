"""The pure controller does, write by write and request by request, what Apache Kafka 3.9.2 did.

tests/vectors/controller holds what a real controller wrote and sent, one file per scenario, with
what was done to the cluster between the lines. Multis are taken apart; the order of one znode's
writes and of one broker's requests is compared, the order between them is not: threads made it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.core.controller.request_batch import (
    ControlRequest,
    SendLeaderAndIsr,
    SendUpdateMetadata,
)
from barnabas.formats.znodes.partition_states import state_path, to_bytes
from barnabas.formats.znodes.topics import (
    TopicAssignment,
    partition_path,
    partitions_path,
    topic_path,
)
from barnabas.model.epochs import ControllerEpoch, LeaderEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicId
from barnabas.model.partition import LeaderAndIsr
from barnabas.model.znode import Create, Delete, SetData, Write
from tests.behaviours import behaviour
from tests.worlds.controller_world import (
    ControllerWorld,
    assignments,
    delete_topic,
    topic_id_of,
)

VECTORS = Path(__file__).parents[3] / "vectors" / "controller"

Script = Iterator[None]


def recording(name: str) -> tuple[list[str], list[dict[str, object]]]:
    """What was done to the cluster, and what the controller did."""
    lines = [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text().splitlines()]
    steps = [line["section"] for line in lines if "section" in line]
    return steps, [line for line in lines if "section" not in line]


def state(leader: int, isr: list[int], controller_epoch: int, leader_epoch: int = 0):
    return LeaderAndIsr(
        BrokerId(leader),
        tuple(BrokerId(one) for one in isr),
        ControllerEpoch(controller_epoch),
        LeaderEpoch(leader_epoch),
    )


def world_with(brokers: list[int], epoch: int, *topics: tuple[str, dict]) -> ControllerWorld:
    """A cluster as it was when a recording begins; each topic with replicas and states."""
    world = ControllerWorld()
    for broker_id in brokers:
        world.register(broker_id)
    for topic, partitions in topics:
        world.create_topic(topic, *(replicas for replicas, _, _ in partitions.values()))
        world.do(Create(partitions_path(topic)))
        for number, (_, known, version) in partitions.items():
            world.do(
                Create(partition_path(topic, number)),
                Create(state_path(topic, number), to_bytes(known)),
                *[SetData(state_path(topic, number), to_bytes(known))] * version,
            )
    world.elect(epoch)
    world.run()
    world.clear()
    return world


def compare(name: str, world: ControllerWorld, script: Callable[[ControllerWorld], Script]) -> None:
    """Play the script, then compare the writes of each znode and the requests to each broker."""
    steps, lines = recording(name)
    played = 0
    for _ in script(world):
        world.run()
        played += 1
    assert played == len(steps)
    wanted = [line for line in lines if "znode" in line]
    told = [line for line in lines if "to" in line]
    assert by_path(map(seen_write, world.committed)) == by_path(map(recorded_write, wanted))
    assert by_broker(map(seen_request, world.requests)) == by_broker(map(recorded_request, told))


def by_path(writes):
    found = defaultdict(list)
    for path, *rest in writes:
        found[path].append(rest)
    return dict(found)


def by_broker(requests):
    found = defaultdict(list)
    for to, *rest in requests:
        found[to].append(rest)
    return dict(found)


def seen_write(write: Write):
    match write:
        case Create(path, data):
            return path, "create", json.loads(data) if data else None
        case SetData(path, data, version):
            assert data is not None
            content = json.loads(data)
            content.pop("topic_id", None)
            return path, "setData", version + 1, content
        case Delete(path):
            return path, "delete"
    raise AssertionError(write)


def recorded_write(line):
    data = line.get("data")
    if isinstance(data, dict):
        data.pop("topic_id", None)
    if line["znode"] == "setData":
        return line["path"], "setData", line["version"], data
    if line["znode"] == "create":
        return line["path"], "create", data
    return line["path"], "delete"


def seen_request(request: ControlRequest):
    epoch = request.controller_epoch
    if isinstance(request, SendLeaderAndIsr):
        entries = [
            [*one.partition, one.state.controller_epoch, one.state.leader, one.state.leader_epoch,
             list(one.state.isr), one.state.partition_epoch, list(one.assignment.replicas),
             one.is_new, int(one.state.leader_recovery_state)]
            for one in request.entries
        ]  # fmt: skip
        leaders = [broker.broker_id for broker in request.live_leaders]
        return request.broker_id, "LeaderAndIsr", epoch, sorted(entries), sorted(leaders)
    if isinstance(request, SendUpdateMetadata):
        entries = [
            [*one.partition, one.state.controller_epoch, one.state.leader, one.state.leader_epoch,
             list(one.state.isr), one.state.partition_epoch, list(one.replicas),
             list(one.offline_replicas)]
            for one in request.entries
        ]  # fmt: skip
        brokers = [broker.broker_id for broker in request.live_brokers]
        return request.broker_id, "UpdateMetadata", epoch, sorted(entries), sorted(brokers)
    entries = [[*one.partition, one.leader_epoch, one.delete_partition] for one in request.entries]
    return request.broker_id, "StopReplica", epoch, sorted(entries)


def recorded_request(line):
    found = [line["to"], line["api"], line["controller_epoch"], sorted(line["entries"])]
    for key in ("live_leaders", "live_brokers"):
        if key in line:
            found.append(line[key])
    return tuple(found)


# -- creation and expansion ----------------------------------------------------------------------


@behaviour("P2", "P4", "P5")
def test_creation():
    def script(world: ControllerWorld) -> Script:
        world.create_topic("rf3", [1, 2, 3], [2, 3, 1], [3, 1, 2])
        yield
        world.create_topic("given", [1, 2, 3], [2, 3, 1], [3, 1, 2])
        yield
        world.create_topic("unk", [1, 77])
        yield

    compare("a-create", world_with([1, 2, 3], 2), script)


@behaviour("M7", "M8")
def test_expansion():
    def script(world: ControllerWorld) -> Script:
        world.set_topic("exp", [2, 3, 1], [3, 2, 1], [1, 3, 2])
        yield
        world.set_topic("exp", [2, 3, 1], [3, 2, 1], [1, 3, 2], [3, 1, 2])
        yield

    exp = {0: ([2, 3, 1], state(2, [2, 3, 1], 7), 0)}
    compare("b-expand", world_with([1, 2, 3], 7, ("exp", exp)), script)


@behaviour("M9", "D11", "D9")
def test_expansion_of_a_topic_whose_deletion_waits_for_a_broker():
    def script(world: ControllerWorld) -> Script:
        world.kill(3)
        yield
        delete_topic(world, "m9")
        yield
        content = TopicAssignment(
            TopicId(topic_id_of("m9")),
            {**assignments([1, 2], [2, 3]), 7: assignments([1, 2])[0]},
        )
        world.do(SetData(topic_path("m9"), content.to_bytes()))
        yield
        world.register(3)
        yield

    m9 = {0: ([1, 2], state(1, [1, 2], 1), 0), 1: ([2, 3], state(2, [2, 3], 1), 0)}
    compare("c-expand-while-queued-for-deletion", world_with([1, 2, 3], 1, ("m9", m9)), script)


# -- deletion ------------------------------------------------------------------------------------


@behaviour("D10", "D12", "D14")
def test_deletion():
    def script(world: ControllerWorld) -> Script:
        delete_topic(world, "i")
        yield
        delete_topic(world, "i2")
        yield
        delete_topic(world, "ghost")
        yield

    i = {0: ([1, 2, 3], state(1, [1, 2, 3], 1), 0), 1: ([2, 3, 1], state(2, [2, 3, 1], 1), 0)}
    i2 = {0: ([1], state(1, [1], 1), 0)}
    compare("i-delete", world_with([1, 2, 3], 5, ("i", i), ("i2", i2)), script)


@behaviour("D13", "D9", "D15")
def test_deletion_that_a_broker_refuses_until_it_bounces():
    def script(world: ControllerWorld) -> Script:
        world.stop_errors[9] = ErrorCode.KAFKA_STORAGE_ERROR
        delete_topic(world, "j9")
        yield
        world.kill(9)
        yield
        world.stop_errors.clear()
        world.register(9)
        yield

    j9 = {0: ([1, 9], state(1, [1, 9], 2), 0)}
    world = world_with([1, 2, 3, 9], 2, ("j9", j9))
    compare("j-delete-stopreplica-error-then-bounce", world, script)


@behaviour("D13", "D15")
def test_deletion_while_a_broker_dies_without_an_answer():
    def script(world: ControllerWorld) -> Script:
        world.register(9)
        world.run()
        world.create_topic("j8", [1, 9])
        yield
        world.silent.add(9)
        delete_topic(world, "j8")
        yield
        world.kill(9)
        yield
        world.silent.clear()
        world.register(9)
        yield

    world = world_with([1, 2, 3], 2)
    compare("j-delete-while-broker-dies-without-answer", world, script)


@behaviour("D11", "D15")
def test_deletion_with_a_dead_broker_that_returns():
    def script(world: ControllerWorld) -> Script:
        world.kill(2)
        yield
        delete_topic(world, "j")
        yield
        world.register(2)
        yield

    j = {0: ([1, 2], state(1, [1, 2], 2), 0), 1: ([2, 1], state(2, [2, 1], 2), 0)}
    compare("j-delete-with-dead-broker-returning", world_with([1, 2, 3], 2, ("j", j)), script)


# -- a new controller ----------------------------------------------------------------------------


@behaviour("N2")
def test_new_controller_finds_a_deletion_that_nobody_saw():
    def script(world: ControllerWorld) -> Script:
        delete_topic(world, "md2")
        world.kill(3)
        world.elect(8)
        yield

    mr = {0: ([2, 9], state(2, [2], 5, 5), 6)}
    md2 = {0: ([1, 2], state(1, [1, 2], 7), 0)}
    world = world_with([1, 2, 3, 9], 7, ("mr", mr), ("md2", md2))
    world.controller = None
    compare("m-controller-killed-before-it-sees-deletion", world, script)


@behaviour("N2", "P3")
def test_new_controller_finishes_creation_and_expansion():
    def script(world: ControllerWorld) -> Script:
        world.create_topic("mc", [1, 2, 3], [3, 1, 2])
        world.set_topic("x", [1, 2, 3], [2, 1, 3])
        world.kill(3)
        world.elect(2)
        yield
        world.register(3)
        yield

    x = {0: ([1, 2, 3], state(1, [1, 2, 3], 1), 0)}
    world = world_with([1, 2, 3], 1, ("x", x))
    compare("m-controller-killed-during-create-and-expand", world, script)


@behaviour("N2", "D15")
def test_new_controller_deletes_again_what_was_half_deleted():
    def script(world: ControllerWorld) -> Script:
        world.silent.add(9)
        delete_topic(world, "md")
        yield
        world.kill(3)
        world.elect(5)
        yield
        world.kill(9)
        yield
        world.silent.clear()
        world.register(9)
        yield

    mr = {0: ([2, 9], state(2, [2, 9], 2, 4), 5)}
    md = {0: ([1, 9], state(1, [1, 9], 4), 0)}
    world = world_with([1, 2, 3, 9], 4, ("mr", mr), ("md", md))
    compare("m-controller-killed-during-deletion", world, script)


@behaviour("R22", "R15", "R13")
def test_leader_and_controller_are_killed_and_return():
    def script(world: ControllerWorld) -> Script:
        world.kill(1)
        world.elect(4)
        yield
        world.register(1)
        yield

    d2 = {0: ([1, 2, 3], state(1, [1, 2, 3], 1), 0)}
    world = world_with([1, 2, 3], 3, ("d2", d2))
    compare("d2-leader-and-controller-killed-returns", world, script)


@behaviour("R21", "R15")
def test_two_replicas_die_one_of_them_the_controller():
    def script(world: ControllerWorld) -> Script:
        world.kill(1)
        yield
        world.kill(2)
        world.elect(2)
        yield
        world.register(1)
        yield
        world.register(2)
        yield

    ec2 = {0: ([1, 2], state(1, [1, 2], 1), 0)}
    world = world_with([1, 2, 3], 1, ("ec2", ec2))
    compare("e-two-replicas-die-controller-on-2", world, script)


@behaviour("R21", "P8")
def test_two_replicas_die_and_the_first_leads_without_having_been_in_sync():
    def script(world: ControllerWorld) -> Script:
        world.kill(1)
        yield
        world.kill(2)
        yield
        world.register(1)
        yield
        world.register(2)
        yield

    eu3 = {0: ([1, 2], state(1, [1, 2], 2), 0)}
    world = world_with([1, 2, 3], 2, ("eu3", eu3))
    world.do(
        SetData(
            "/config/topics/eu3",
            b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}',
        )
    )
    compare("e-two-replicas-die-controller-on-3-unclean", world, script)


@behaviour("N12", "R11")
def test_broker_that_bounces_within_one_change():
    def script(world: ControllerWorld) -> Script:
        world.bounce(9)
        yield

    b = {0: ([9, 1], state(9, [9, 1], 3), 0), 1: ([1, 9], state(1, [1, 9], 3), 0)}
    compare("n12-bounced-broker-seen-as-one-change", world_with([1, 2, 9], 3, ("b", b)), script)
