"""Two brokers under faults: what was acknowledged is never lost, what was read is never unread.

The test plays an honest controller: it elects a live member of the isr, takes a dead one out of
the isr unless it is the last, and lets a replica in when its leader asks for that. Produce, cuts,
kills and elections come in any order; then everything is healed and compared.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.formats.batches.reader import batches_in, read_records
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.storage.partition_log import PartitionLog
from tests.worlds.requests import batch, fetch_request, produce_request, produced, values_of
from tests.worlds.virtual_world import LOG_DIR, Client, VirtualWorld, plan

TOPIC = "t"
TOPIC_ID = TopicId(b"\x0a" * 16)
T0 = TopicPartition(TOPIC, 0)
BOTH = (1, 2)


class Replication(RuleBasedStateMachine):
    """Broker 1 and 2, one partition, and everything that was ever told about it."""

    @initialize()
    def begin(self) -> None:
        self.world = VirtualWorld()
        for broker_id in BOTH:
            self.world.add_broker(broker_id)
        self.leader, self.epoch, self.isr = 1, 0, (1, 2)
        self.alive = {1: True, 2: True}
        self.is_cut = False
        self.sent = 0
        self.acknowledged: dict[int, bytes] = {}
        """Offset and value of every record that was acknowledged by all."""
        self.read: dict[int, bytes] = {}
        """Offset and value of every record that a consumer has seen."""
        self.waiting: list[tuple[Client, int, bytes]] = []
        self.decide()

    # The controller

    def decide(self) -> None:
        decision = {0: plan(self.leader, self.epoch, self.isr)}
        live = [one for one in BOTH if self.alive[one]]
        for broker_id in live:
            self.world.tell_metadata(broker_id, TOPIC, TOPIC_ID, decision, live)
        for broker_id in sorted(live, key=lambda one: one != self.leader):
            self.world.tell_leader(broker_id, TOPIC, TOPIC_ID, decision)

    def elect(self) -> None:
        """A live member of the isr leads; nobody when there is none."""
        members = [one for one in self.isr if self.alive[one]]
        self.leader = members[0] if members else -1
        self.isr = tuple(members) or self.isr[:1]
        self.epoch += 1
        self.decide()

    def log(self, broker_id: int) -> PartitionLog | None:
        return self.world.hosts[broker_id].broker.logs.log(T0)

    # What happens

    def note_answers(self) -> None:
        still: list[tuple[Client, int, bytes]] = []
        for client, number, value in self.waiting:
            if number in client.answers:
                answer = produced(client.answers[number])
                if answer.error_code == ErrorCode.NONE:
                    known = self.acknowledged.setdefault(answer.base_offset, value)
                    assert known == value, "two records were acknowledged at one offset"
            elif not client.closed_reason:
                still.append((client, number, value))
        self.waiting = still

    @rule(count=st.integers(1, 3), acks=st.sampled_from([1, -1, -1]))
    def produce(self, count: int, acks: int) -> None:
        if self.leader < 0:
            return
        client = self.world.client(self.leader)
        for _ in range(count):
            self.sent += 1
            value = b"v%d" % self.sent
            body = produce_request(TOPIC, {0: batch([value])}, acks=acks, timeout_ms=5000)
            number = client.send(ApiKey.PRODUCE, 9, body)
            if acks == -1:
                self.waiting.append((client, number, value))

    @rule(ms=st.sampled_from([1, 2, 3, 10, 700, 6000]))
    def wait(self, ms: int) -> None:
        self.world.run(ms)
        self.note_answers()

    @rule()
    def consume(self) -> None:
        if self.leader < 0:
            return
        client = self.world.client(self.leader)
        body = fetch_request(TOPIC, {0: 0}, topic_id=TOPIC_ID)
        (topic,) = client.call(ApiKey.FETCH, 17, body).responses
        for offset, value in enumerate(values_of(topic.partitions[0])):
            assert value is not None
            known = self.read.setdefault(offset, value)
            assert known == value, "what was read has changed"
        self.note_answers()

    @rule()
    def cut_or_mend(self) -> None:
        if self.is_cut:
            self.world.network.mend("broker1", "broker2")
        else:
            self.world.network.cut("broker1", "broker2")
        self.is_cut = not self.is_cut

    @precondition(lambda self: all(self.alive.values()))
    @rule(broker_id=st.sampled_from(BOTH))
    def kill(self, broker_id: int) -> None:
        self.world.hosts[broker_id].kill()
        self.alive[broker_id] = False
        self.note_answers()
        if broker_id == self.leader or len(self.isr) > 1:
            self.elect()

    @precondition(lambda self: not all(self.alive.values()))
    @rule()
    def start(self) -> None:
        broker_id = next(one for one in BOTH if not self.alive[one])
        self.world.hosts[broker_id].start()
        self.alive[broker_id] = True
        if self.leader < 0:
            self.elect()
        else:
            self.decide()

    @precondition(lambda self: self.leader > 0)
    @rule()
    def let_in(self) -> None:
        """What AlterPartition will do: the leader says who is in sync, the controller agrees."""
        partition = self.world.hosts[self.leader].broker.replicas.find(TOPIC, 0)
        assert partition is not None
        assert partition.leader is not None
        change = partition.leader.poll_isr_change(self.world.now_ms)
        partition.leader.note_isr_refused()
        if change is not None and len(change.isr) > len(self.isr):
            self.isr = tuple(int(one) for one in change.isr)
            self.epoch += 1
            self.decide()

    @precondition(lambda self: len(self.isr) == 2 and all(self.alive.values()))
    @rule()
    def change_leader(self) -> None:
        self.leader = 3 - self.leader
        self.epoch += 1
        self.decide()

    # What must hold

    @invariant()
    def epochs_never_decrease_and_the_watermark_is_inside_the_log(self) -> None:
        if not hasattr(self, "world"):
            return
        for broker_id in BOTH:
            log = self.log(broker_id) if self.alive[broker_id] else None
            if log is not None:
                entries = log.leader_epochs.entries()
                assert list(entries) == sorted(entries)
                assert log.log_start_offset <= log.high_watermark <= log.log_end_offset

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        if self.is_cut:
            self.cut_or_mend()
        if not all(self.alive.values()):
            self.start()
        for _ in range(3):
            self.world.run(3000)
            self.let_in()
        self.world.run(7000)
        self.note_answers()
        one, two = (self.content(broker_id) for broker_id in BOTH)
        assert one == two, "the replicas differ after all faults are over"
        for offset, value in {**self.acknowledged, **self.read}.items():
            assert one[offset] == value, f"the record at {offset} was lost"

    def content(self, broker_id: int) -> list[bytes | None]:
        files = self.world.hosts[broker_id].disk.snapshot(f"{LOG_DIR}/t-0")
        found: list[bytes | None] = []
        for name in sorted(name for name in files if name.endswith(".log")):
            data = files[name]
            for position, header in batches_in(data, 0, len(data)):
                found += [record.value for record in read_records(data, header, position)]
        return found


TestReplication = Replication.TestCase
TestReplication.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=25
)
