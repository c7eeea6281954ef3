"""Producer ids: by the thousand, to several brokers, through lost answers, none twice."""

from barnabas.broker.producer_ids import (
    WAITING_MAX,
    ProducerIds,
    ProducerIdsClaimed,
    ProducerIdsUnavailable,
)
from barnabas.formats.znodes.producer_ids import PRODUCER_ID_BLOCK_PATH
from barnabas.model.znode import Create, GetData, SetData
from tests.worlds.store_world import StoreWorld, events_of


def make(world: StoreWorld, broker_id: int) -> tuple[ProducerIds, list[int | None]]:
    given: list[int | None] = []
    return ProducerIds(world.add_broker(broker_id)), given


def ask(ids: ProducerIds, given: list[int | None], times: int = 1) -> None:
    for _ in range(times):
        ids.next_id(lambda producer_id, _: given.append(producer_id))


def test_blocks_of_a_thousand_for_several_brokers():
    world = StoreWorld()
    world.do(Create(PRODUCER_ID_BLOCK_PATH))
    one, ones = make(world, 1)
    two, twos = make(world, 2)
    ask(one, ones, 3)
    ask(two, twos, 2)
    world.run()
    assert (ones, twos) == ([0, 1, 2], [1000, 1001])
    assert world.data(PRODUCER_ID_BLOCK_PATH) == (
        b'{"version":1,"broker":2,"block_start":"1000","block_end":"1999"}'
    )
    ask(one, ones, 998)
    world.run()
    assert ones[-2:] == [999, 2000]
    assert len(set(ones + twos)) == len(ones + twos)
    # What is at hand is given at once.
    ask(one, ones)
    assert ones[-1] == 2001


def test_a_restarted_broker_begins_a_new_block():
    world = StoreWorld()
    for start in (0, 1000, 2000):
        ids, given = make(world, 1)
        ask(ids, given)
        world.run()
        assert given == [start]


def test_more_clients_than_a_block():
    world = StoreWorld()
    ids, given = make(world, 1)
    ask(ids, given, 2_500)
    world.run()
    assert given == list(range(2_500))


def test_a_claim_whose_answer_is_lost_is_never_used():
    world = StoreWorld()
    ids, given = make(world, 1)
    broker = ids._broker
    ask(ids, given)
    world.ensemble.pump_round(0)
    world.ensemble.pump_round(0)
    broker.store.disconnect(apply_requests=True)
    world.run()
    assert given == [None]
    assert events_of(broker, ProducerIdsUnavailable)
    assert b'"0"' in (world.data(PRODUCER_ID_BLOCK_PATH) or b"")
    broker.store.restore()
    ask(ids, given)
    world.run()
    assert given == [None, 1000]
    assert [one.first_producer_id for one in events_of(broker, ProducerIdsClaimed)] == [1000]


def test_a_node_that_makes_no_sense_gives_no_ids():
    world = StoreWorld()
    world.do(Create(PRODUCER_ID_BLOCK_PATH, b'{"version":1}'))
    ids, given = make(world, 1)
    ask(ids, given)
    world.run()
    assert given == [None]
    end = b'{"version":1,"broker":1,"block_start":"0","block_end":"9223372036854775000"}'
    world.do(SetData(PRODUCER_ID_BLOCK_PATH, end))
    ask(ids, given)
    world.run()
    assert given == [None, None]
    assert world.do(GetData(PRODUCER_ID_BLOCK_PATH))[0].data == end


def test_no_more_than_so_many_wait():
    world = StoreWorld()
    ids, given = make(world, 1)
    ask(ids, given, WAITING_MAX + 1)
    assert given == [None]
    world.run()
    assert given[1:] == list(range(WAITING_MAX))
