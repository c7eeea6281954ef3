"""What a broker confirmed, and what it owes an answer for after an error of a whole request.

Kafka's controller forgets a request once it was answered, whatever the answer was (R4). Here the
partitions of a request that was refused as a whole stay owed, and are told again as the image has
them then, until the broker confirms them or they are none of its business any more.
"""

from collections.abc import Mapping

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import (
    ControlRequest,
    RequestBatch,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from barnabas.core.image.cluster_image import Replica
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition
from barnabas.model.partition import LeaderAndIsr

_FENCED = (ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH)
"""The broker obeys another controller, or is another process by now: nothing is owed to it."""

_TELLABLE = (ReplicaState.NEW, ReplicaState.ONLINE)


class Acknowledgements:
    """One broker's; dropped with its channel, as a broker that comes back is told everything."""

    def __init__(self, broker_id: BrokerId) -> None:
        self._broker_id = broker_id
        self._confirmed: dict[TopicPartition, LeaderAndIsr] = {}
        self._owed: dict[TopicPartition, bool] = {}
        """Partitions to be told again, and whether they were told as new."""
        self._owes_metadata = False

    @property
    def is_anything_owed(self) -> bool:
        return bool(self._owed) or self._owes_metadata

    def note_answered(
        self,
        request: ControlRequest,
        error: ErrorCode,
        partition_errors: Mapping[TopicPartition, ErrorCode],
    ) -> None:
        """Take an answer into account; an error of one partition is a confirmation too (Q7)."""
        if error in _FENCED:
            return
        match request:
            case SendUpdateMetadata():
                self._owes_metadata = error is not ErrorCode.NONE
            case SendLeaderAndIsr():
                for entry in request.entries:
                    if error is ErrorCode.NONE and entry.partition in partition_errors:
                        self._confirmed[entry.partition] = entry.state
                        self._owed.pop(entry.partition, None)
                    else:
                        was_new = self._owed.get(entry.partition, False)
                        self._owed[entry.partition] = entry.is_new or was_new
            case SendStopReplica():
                # What could not be deleted is the deletion's own business (D13).
                for stopped in request.entries:
                    self._confirmed.pop(stopped.partition, None)
                    self._owed.pop(stopped.partition, None)

    def requests_owed(self, context: ControllerContext) -> tuple[ControlRequest, ...]:
        """What to tell the broker again; what it need not know any more is forgotten."""
        batch = RequestBatch()
        for partition in sorted(self._owed):
            state = context.image.partition_states.get(partition)
            replica = Replica(*partition, self._broker_id)
            is_ours = context.replica_states.get(replica) in _TELLABLE
            if state is None or not is_ours or self._confirmed.get(partition) == state:
                del self._owed[partition]
            else:
                is_new = self._owed[partition]
                entry = context.leader_and_isr_entry(partition, state, is_new=is_new)
                batch.add_leader_and_isr((self._broker_id,), entry)
        if self._owes_metadata:
            entries = [context.metadata_entry(one) for one in context.image.partitions()]
            batch.add_update_metadata((self._broker_id,), [one for one in entries if one])
        return batch.flush(context.image).requests
