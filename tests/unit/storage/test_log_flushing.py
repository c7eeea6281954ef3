"""What a flush makes durable, and what happens to a log meanwhile."""

from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint
from barnabas.model.config import TopicConfig
from tests.worlds.log_world import PARTITION, LogWorld, append, batch_of, produce, read_all

SMALL = TopicConfig(segment_bytes=300, index_interval_bytes=50)


def world_with(count: int) -> LogWorld:
    world = LogWorld(topic=SMALL)
    world.start()
    for number in range(count):
        produce(world.log(), b"%d" % number, timestamp=world.wall_ms)
    return world


def test_a_roll_is_followed_by_a_flush_of_all_but_the_active_segment() -> None:
    world = world_with(20)
    log = world.log()
    assert log.recovery_point == 0
    world.settle()
    assert log.recovery_point == log.active_segment.base_offset
    world.memory.cut_power()
    world.start()
    assert len(read_all(world.log())) == world.log().log_end_offset >= 16


def test_what_is_appended_during_a_flush_is_not_counted_as_durable() -> None:
    world = world_with(20)
    log = world.log()
    world.manager.flush(log)
    world.manager.tick(world.now_ms, world.wall_ms)
    for _ in range(10):
        produce(log, b"later", timestamp=world.wall_ms)
    world.pump()
    assert log.recovery_point == 20
    assert log.log_end_offset == 30


def test_a_cut_during_a_flush_takes_its_promise_back() -> None:
    world = world_with(20)
    log = world.log()
    world.manager.flush(log)
    world.manager.tick(world.now_ms, world.wall_ms)
    assert world.memory.jobs
    log.truncate_to(11, world.wall_ms)
    for _ in range(9):
        produce(log, b"other", leader_epoch=1, timestamp=world.wall_ms)
    world.pump()
    assert log.recovery_point <= 11
    snapshots = [
        int(name[:20])
        for name in world.memory.snapshot("/logs/topic-0")
        if name.endswith(".snapshot")
    ]
    # The flush had been about to write snapshots of what was cut off.
    assert [offset for offset in snapshots if offset > 11] == []
    world.settle()
    world.memory.cut_power()
    world.start()
    assert world.log().leader_epochs.epoch_at(11) in (1, -1)
    assert {value for _, value in read_all(world.log())[11:]} <= {b"other"}


def test_a_checkpointed_recovery_point_is_lowered_before_a_cut() -> None:
    world = world_with(20)
    world.manager.flush(world.log())
    world.settle()
    world.advance(61_000)
    path = "/logs/recovery-point-offset-checkpoint"
    assert decode_offset_checkpoint(world.memory.read_file(path)) == {PARTITION: 20}
    trace = world.memory.trace
    before = len(trace)
    world.log().truncate_to(4, world.wall_ms)
    assert decode_offset_checkpoint(world.memory.read_file(path)) == {PARTITION: 4}
    renamed = [line for line in trace[before:] if line.startswith(("rename", "truncate"))]
    assert "recovery-point" in renamed[0]


def test_checkpoints_are_written_when_due_and_changed() -> None:
    world = world_with(3)
    world.advance(61_000)
    trace = world.memory.trace
    before = len(trace)
    world.advance(600_000)
    assert trace[before:] == []
    produce(world.log(), b"x", timestamp=world.wall_ms)
    world.advance(5000)
    assert any("replication-offset-checkpoint" in line for line in trace[before:])
    assert not any("recovery-point" in line for line in trace[before:])


def test_a_start_offset_inside_a_segment_is_checkpointed() -> None:
    world = world_with(20)
    world.log().delete_records_before(7)
    world.advance(61_000)
    data = world.memory.read_file("/logs/log-start-offset-checkpoint")
    assert decode_offset_checkpoint(data) == {PARTITION: 7}
    world.memory.kill_process()
    world.start()
    assert world.log().log_start_offset == 7
    assert [offset for offset, _ in read_all(world.log())] == list(range(7, 20))


def test_small_files_are_written_once_for_many_changes() -> None:
    world = LogWorld()
    world.start()
    log = world.log()
    for epoch in range(10):
        append(log, batch_of(b"x"), leader_epoch=epoch)
    world.settle()
    writes = [line for line in world.memory.trace if "leader-epoch-checkpoint.tmp" in line]
    assert len([line for line in writes if line.startswith("write")]) == 1
    assert len(log.leader_epochs) == 10


def test_what_waits_for_its_own_flush_does_not_keep_the_loop_turning() -> None:
    world = world_with(20)
    log = world.log()
    world.manager.flush(log)
    assert world.manager.next_deadline_ms() == world.now_ms
    world.manager.tick(world.now_ms, world.wall_ms)
    produce(log, b"later", timestamp=world.wall_ms)
    world.manager.flush(log)
    due_ms = world.manager.next_deadline_ms()
    assert due_ms is not None
    assert due_ms > world.now_ms
    world.pump()
    assert log.recovery_point == 20
    assert world.manager.next_deadline_ms() == world.now_ms
    world.settle()
    assert log.recovery_point == 21
