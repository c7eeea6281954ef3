"""The table of a group's states is Kafka's, every pair of it, and nothing crosses elsewhere."""

from itertools import product

import pytest

from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GROUP, GroupState
from barnabas.core.coordinator.outcome import GroupMoved, Outcome
from barnabas.model.invariant import InvariantViolated

S = GroupState

SOURCES = {
    S.EMPTY: {S.PREPARING_REBALANCE},
    S.PREPARING_REBALANCE: {S.EMPTY, S.COMPLETING_REBALANCE, S.STABLE},
    S.COMPLETING_REBALANCE: {S.PREPARING_REBALANCE},
    S.STABLE: {S.COMPLETING_REBALANCE},
    # Kafka lets the dead die again; here they are forgotten with their first death.
    S.DEAD: {S.EMPTY, S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE, S.STABLE},
}


@pytest.mark.parametrize(("source", "target"), list(product(S, S)))
def test_every_pair_of_group_states(source: GroupState, target: GroupState):
    group = Group("g", 5)
    group.state = source
    outcome = Outcome()
    is_allowed = source in SOURCES[target]
    assert GROUP.allows(source, target) == is_allowed
    if is_allowed:
        group.cross(target, "a test", 7, outcome)
        assert (group.state, group.state_timestamp) == (target, 7)
        assert outcome.stories == [GroupMoved("g", 0, source, target, "a test")]
    else:
        with pytest.raises(InvariantViolated, match="no arrow"):
            group.cross(target, "a test", 7, outcome)
        assert (group.state, group.state_timestamp, outcome.stories) == (source, 5, [])


def test_states_have_the_names_that_tools_show():
    assert [state.value for state in S] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
    ]
