"""Makes this broker a member: the paths that must be there, the cluster's id, its ephemeral node.

The node's czxid is the broker epoch. It lives as long as the session with the store; when that
expires, whatever this broker was as a controller is dropped first, then it registers anew and only
then stands for election again (N3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_stream import BrokerFailed
from barnabas.core.administration.topic_ids import new_uuid
from barnabas.formats.znodes.brokers import (
    BROKER_IDS_PATH,
    BROKER_SEQUENCE_PATH,
    BrokerRegistration,
    broker_path,
)
from barnabas.formats.znodes.cluster import (
    CLUSTER_ID_PATH,
    PERSISTENT_PATHS,
    ClusterId,
    parents_of,
)
from barnabas.formats.znodes.uuids import uuid_text
from barnabas.model.epochs import BrokerEpoch
from barnabas.model.errors import (
    BarnabasError,
    DecodeError,
    LogDirectoryRefused,
    RegistrationRefused,
)
from barnabas.model.ids import BrokerId
from barnabas.model.znode import (
    Create,
    CreateMode,
    Delete,
    GetChildren,
    GetData,
    Operation,
    SessionChange,
    SessionState,
    SetData,
    StoreAnswer,
    StoreError,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

RETRY_AFTER_MS: Final = 1_000
"""How soon the store is asked again when the link to it was cut meanwhile."""

Then = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """This broker is a member of the cluster, for the first time or anew."""

    broker_id: BrokerId
    epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class SessionLost:
    """The session with the metadata store expired: the cluster holds this broker for gone."""


class Registration:
    """The steps to membership, each with what comes after it, and what the session's end undoes.

    An error that no waiting mends fails the broker (`BrokerFailed`); then nothing comes after.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._session_id = 0
        self._former_session_ids: list[int] = []
        self._was_registered = False
        broker.metadata.on_session_change(self._note_session)

    # -- what the cluster is -----------------------------------------------------------------

    def prepare(self, then: Callable[[str, int], None], cluster_of_logs: str | None = None) -> None:
        """Make the paths that are missing, then call `then(cluster_id, now_ms)`.

        A store without a cluster gets one unless the logs here are of a cluster already: such a
        store was lost or is another's, and is left without an id that nobody's logs have.
        """
        paths = dict.fromkeys(
            one
            for path in (*PERSISTENT_PATHS, CLUSTER_ID_PATH)
            for one in (*parents_of(path), path)
        )
        del paths[CLUSTER_ID_PATH]

        def on_made(answer: StoreAnswer, now_ms: int) -> None:
            if self._must_repeat(answer, lambda _: self.prepare(then, cluster_of_logs), now_ms):
                return
            for outcome in answer.outcomes:
                if outcome.error not in (StoreError.OK, StoreError.NODE_EXISTS):
                    self._refuse(f"the metadata store refused a path: {outcome.error.name}", now_ms)
                    return
            self._read_cluster_id(then, cluster_of_logs)

        self._submit([Create(path) for path in paths], on_made)

    def _read_cluster_id(
        self, then: Callable[[str, int], None], cluster_of_logs: str | None
    ) -> None:
        """The id of the cluster; the first broker gives it one."""

        def on_read(answer: StoreAnswer, now_ms: int) -> None:
            if self._must_repeat(answer, lambda _: again(), now_ms):
                return
            found = answer.outcomes[0]
            if found.error is StoreError.NO_NODE and cluster_of_logs is not None:
                self._fail(_new_store(cluster_of_logs), now_ms)
                return
            if found.error is StoreError.NO_NODE:
                content = ClusterId(uuid_text(new_uuid(self._broker.random))).to_bytes()
                self._submit([Create(CLUSTER_ID_PATH, content)], on_created)
                return
            try:
                then(ClusterId.from_bytes(CLUSTER_ID_PATH, found.data).cluster_id, now_ms)
            except DecodeError as problem:
                self._fail(problem, now_ms)

        def on_created(_answer: StoreAnswer, _now_ms: int) -> None:
            again()

        def again() -> None:
            self._read_cluster_id(then, cluster_of_logs)

        self._submit([GetData(CLUSTER_ID_PATH)], on_read)

    def generate_broker_id(self, then: Callable[[BrokerId, int], None]) -> None:
        """An id for a broker that was given none: above those that people give."""

        def on_written(answer: StoreAnswer, now_ms: int) -> None:
            if self._must_repeat(answer, lambda _: self.generate_broker_id(then), now_ms):
                return
            written = answer.outcomes[0]
            if written.stat is None:
                self._refuse(f"{BROKER_SEQUENCE_PATH}: {written.error.name}", now_ms)
                return
            reserved = self._broker.config.reserved_broker_max_id
            then(BrokerId(written.stat.version + reserved), now_ms)

        self._submit([SetData(BROKER_SEQUENCE_PATH, b"")], on_written)

    # -- this broker's node ------------------------------------------------------------------

    def register(self, then: Then) -> None:
        """Make our node unless another broker has our address or our id; then we are live."""

        def on_listed(answer: StoreAnswer, now_ms: int) -> None:
            if self._must_repeat(answer, lambda _: self.register(then), now_ms):
                return
            ours = str(self._broker.broker_id)
            others = sorted(
                name for name in answer.outcomes[0].children if name != ours and name.isdecimal()
            )
            if not others:
                self._create(then)
                return
            paths = [broker_path(BrokerId(int(name))) for name in others]
            self._submit(
                [GetData(path) for path in paths],
                lambda found, read_ms: self._compare(paths, found, then, read_ms),
            )

        self._submit([GetChildren(BROKER_IDS_PATH)], on_listed)

    def _compare(self, paths: list[str], answer: StoreAnswer, then: Then, now_ms: int) -> None:
        """Refuse to start when an address of ours is advertised by another broker."""
        if self._must_repeat(answer, lambda _: self.register(then), now_ms):
            return
        ours = {(one.host, one.port) for one in self._broker.config.advertised_listeners}
        for path, outcome in zip(paths, answer.outcomes, strict=True):
            if not outcome.is_ok:
                continue
            try:
                other = BrokerRegistration.from_bytes(path, outcome.data)
            except DecodeError:
                continue
            for listener in other.listeners:
                if (listener.host, listener.port) in ours:
                    self._refuse(
                        f"{listener.host}:{listener.port} of advertised.listeners is the address "
                        f"of another broker, {path}",
                        now_ms,
                    )
                    return
        self._create(then)

    def _create(self, then: Then) -> None:
        broker = self._broker
        path = broker_path(broker.broker_id)
        content = BrokerRegistration(
            broker.config.advertised_listeners,
            broker.wall_clock.epoch_ms(),
            broker.config.broker_rack,
        ).to_bytes()

        def on_created(answer: StoreAnswer, now_ms: int) -> None:
            if self._must_repeat(answer, lambda _: self._create(then), now_ms):
                return
            created, written = answer.outcomes
            if answer.is_ok and written.stat is not None:
                self._note_registered(BrokerEpoch(written.stat.czxid), then, now_ms)
            elif created.error is StoreError.NODE_EXISTS:
                self._submit([GetData(path)], on_found)
            else:
                self._refuse(f"{path}: {created.error.name}", now_ms)

        def on_found(answer: StoreAnswer, now_ms: int) -> None:
            if self._must_repeat(answer, lambda _: self._create(then), now_ms):
                return
            found = answer.outcomes[0].stat
            if found is None:
                self._create(then)
            elif found.ephemeral_owner == self._session_id:
                # Our own, and only the answer to it was lost.
                self._note_registered(BrokerEpoch(found.czxid), then, now_ms)
            elif found.ephemeral_owner in self._former_session_ids:
                # Of a session of this very process that the store has not buried yet.
                delete = Delete(path, found.version)
                self._submit([delete], lambda _answer, _now_ms: self._create(then))
            else:
                self._refuse(
                    f"another live broker is registered as {path}; if it was killed a moment ago, "
                    "its session has yet to expire",
                    now_ms,
                )

        # Made empty and written at once, so that the answer carries the node's czxid.
        self._submit(
            [Create(path, None, CreateMode.EPHEMERAL), SetData(path, content, 0)],
            on_created,
            is_multi=True,
        )

    def _note_registered(self, epoch: BrokerEpoch, then: Then, now_ms: int) -> None:
        self._was_registered = True
        self._broker.broker_epoch = epoch
        self._broker.events.publish(BrokerRegistered(self._broker.broker_id, epoch), now_ms)
        then(now_ms)

    # -- the session -------------------------------------------------------------------------

    def _note_session(self, change: SessionChange, now_ms: int) -> None:
        broker = self._broker
        broker.controller.note_session(change, now_ms)
        match change.state:
            case SessionState.EXPIRED:
                broker.metadata.forget_watchers()
                broker.dynamic_configs.stop()
                broker.events.publish(SessionLost(), now_ms)
                broker.metadata.reconnect()
            case SessionState.CONNECTED:
                is_new = change.session_id != self._session_id
                if is_new and self._session_id:
                    self._former_session_ids = [*self._former_session_ids[-7:], self._session_id]
                self._session_id = change.session_id
                if is_new and self._was_registered:
                    self.register(self._return)
            case SessionState.DISCONNECTED:
                pass

    def _return(self, now_ms: int) -> None:
        """Registered anew: take part in elections and follow changes as after a start."""
        self._broker.controller.start(now_ms)
        self._broker.dynamic_configs.start(now_ms)

    # -- what the steps share ----------------------------------------------------------------

    def _submit(
        self,
        operations: list[Operation],
        then: Callable[[StoreAnswer, int], None],
        *,
        is_multi: bool = False,
    ) -> None:
        self._broker.metadata.submit(operations, then, is_multi=is_multi)

    def _must_repeat(self, answer: StoreAnswer, step: Then, now_ms: int) -> bool:
        """Whether the link was cut, so that the step is taken again, or the session ended."""
        errors = [outcome.error for outcome in answer.outcomes]
        if StoreError.CONNECTION_LOSS in errors:
            self._broker.deadlines.at(now_ms + RETRY_AFTER_MS, step)
            return True
        if StoreError.SESSION_EXPIRED in errors:
            # A broker that was never registered goes on with the new session; any other begins
            # with its registration when that is there.
            if not self._was_registered:
                self._broker.deadlines.at(now_ms + RETRY_AFTER_MS, step)
            return True
        return False

    def _refuse(self, reason: str, now_ms: int) -> None:
        self._fail(RegistrationRefused(reason), now_ms)

    def _fail(self, error: BarnabasError, now_ms: int) -> None:
        self._broker.events.publish(BrokerFailed(error), now_ms)


def _new_store(cluster_of_logs: str) -> LogDirectoryRefused:
    return LogDirectoryRefused(
        f"the metadata store is new, it has no {CLUSTER_ID_PATH}, and the logs in log.dirs are of "
        f"another cluster: found cluster.id={cluster_of_logs} in meta.properties, expected the "
        "store they were made with, or no logs"
    )
