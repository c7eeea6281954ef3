"""Who leads a partition next: named rules without state of their own (P2, P8)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.model.epochs import ControllerEpoch, LeaderEpoch
from barnabas.model.ids import BrokerId
from barnabas.model.partition import NO_LEADER, LeaderAndIsr, LeaderRecoveryState


class Election(NamedTuple):
    """The state to write when it won, and the replicas to tell."""

    state: LeaderAndIsr
    recipients: tuple[BrokerId, ...]


def initial_state(
    live_replicas: Sequence[BrokerId], controller_epoch: ControllerEpoch
) -> LeaderAndIsr | None:
    """The first state of a partition: its first live replica leads, all live ones are in sync."""
    if not live_replicas:
        return None
    return LeaderAndIsr(live_replicas[0], tuple(live_replicas), controller_epoch)


def has_live_in_sync_replica(state: LeaderAndIsr, live_replicas: Sequence[BrokerId]) -> bool:
    """Whether a clean election can find a leader at all."""
    return any(replica in live_replicas for replica in state.isr)


def elect_offline_leader(
    state: LeaderAndIsr,
    live_replicas: Sequence[BrokerId],
    controller_epoch: ControllerEpoch,
    *,
    is_unclean_allowed: bool,
) -> Election | None:
    """A leader for a partition that lost its own; `live_replicas` in the order of preference.

    Clean: the first live replica that is in sync, and of the isr what is live. Unclean: the first
    live one, alone in the isr, and the state says that it has yet to recover.
    """
    in_sync = [replica for replica in live_replicas if replica in state.isr]
    if in_sync:
        elected = replace(
            _next_epoch(state, controller_epoch),
            leader=in_sync[0],
            isr=tuple(replica for replica in state.isr if replica in live_replicas),
        )
    elif live_replicas and is_unclean_allowed:
        elected = replace(
            _next_epoch(state, controller_epoch),
            leader=live_replicas[0],
            isr=(live_replicas[0],),
            leader_recovery_state=LeaderRecoveryState.RECOVERING,
        )
    else:
        return None
    return Election(elected, tuple(live_replicas))


def without_replica(
    state: LeaderAndIsr, replica: BrokerId, controller_epoch: ControllerEpoch
) -> LeaderAndIsr | None:
    """The state after a replica went out of sync; None when it was not in sync anyway (R15).

    A replica that leads leaves no leader behind. The sole member of an isr stays in it: somebody
    must be known to hold what was acknowledged.
    """
    if replica not in state.isr:
        return None
    isr = state.isr
    if len(isr) > 1:
        isr = tuple(member for member in isr if member != replica)
    leader = NO_LEADER if state.leader == replica else state.leader
    return replace(_next_epoch(state, controller_epoch), leader=leader, isr=isr)


def _next_epoch(state: LeaderAndIsr, controller_epoch: ControllerEpoch) -> LeaderAndIsr:
    return replace(
        state,
        leader_epoch=LeaderEpoch(state.leader_epoch + 1),
        controller_epoch=controller_epoch,
    )
