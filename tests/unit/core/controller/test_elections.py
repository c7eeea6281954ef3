"""The rules of elections alone, on generated states: what must hold whoever is live."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.core.controller.elections import (
    elect_offline_leader,
    initial_state,
    without_replica,
)
from barnabas.model.epochs import ControllerEpoch
from barnabas.model.partition import LeaderRecoveryState
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import leader_and_isr

replicas = st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True)
OURS = ControllerEpoch(9)


@st.composite
def cases(draw):
    """An assignment, a state of it, and which of its replicas are live."""
    assignment = draw(replicas)
    isr = draw(st.lists(st.sampled_from(assignment), min_size=1, unique=True))
    leader = draw(st.sampled_from([*isr, -1]))
    live = [one for one in assignment if draw(st.booleans())]
    state = leader_and_isr(leader, isr, draw(st.integers(0, 50)), is_recovering=draw(st.booleans()))
    return assignment, state, live


@behaviour("P8")
@given(cases(), st.booleans())
def test_offline_election(case, is_unclean_allowed):
    assignment, state, live = case
    election = elect_offline_leader(state, live, OURS, is_unclean_allowed=is_unclean_allowed)
    clean = [one for one in assignment if one in live and one in state.isr]
    if clean:
        assert election is not None
        assert election.state.leader == clean[0]
        assert election.state.isr == tuple(one for one in state.isr if one in live)
        assert election.state.leader_recovery_state is state.leader_recovery_state
    elif live and is_unclean_allowed:
        assert election is not None
        assert election.state.leader == live[0]
        assert election.state.isr == (live[0],)
        assert election.state.leader_recovery_state is LeaderRecoveryState.RECOVERING
    else:
        assert election is None
        return
    assert election.state.leader_epoch == state.leader_epoch + 1
    assert election.state.controller_epoch == OURS
    assert election.recipients == tuple(live)


@behaviour("P2")
@given(replicas)
def test_first_state(live):
    state = initial_state(live, OURS)
    assert state is not None
    assert (state.leader, state.isr, state.leader_epoch) == (live[0], tuple(live), 0)
    assert initial_state([], OURS) is None


@behaviour("R15")
@given(cases(), st.integers(1, 6))
def test_leaving_the_isr(case, leaver):
    _, state, _ = case
    shrunk = without_replica(state, leaver, OURS)
    if leaver not in state.isr:
        assert shrunk is None
        return
    assert shrunk is not None
    assert shrunk.isr, "an isr is never empty"
    assert leaver not in shrunk.isr or state.isr == (leaver,) == shrunk.isr
    assert set(shrunk.isr) <= set(state.isr)
    assert shrunk.leader == (-1 if state.leader == leaver else state.leader)
    assert shrunk.leader_epoch == state.leader_epoch + 1
    assert shrunk.partition_epoch == state.partition_epoch
