"""The log directories of a broker: whose they are, which are usable, how they were left.

Nothing is changed in any directory before all of them were found to be ours: a wrong one is
refused with what was found and what was expected.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint, encode_offset_checkpoint
from barnabas.formats.logdir.clean_shutdown import encode_clean_shutdown
from barnabas.formats.logdir.meta_properties import (
    ZOOKEEPER_VERSION,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from barnabas.formats.logdir.names import (
    CLEAN_SHUTDOWN_FILE,
    CLUSTER_METADATA_TOPIC,
    HIGH_WATERMARK_FILE,
    LOCK_FILE,
    LOG_START_OFFSET_FILE,
    META_PROPERTIES_FILE,
    RECOVERY_POINT_FILE,
    REMOTE_LOG_INDEX_CACHE,
    parse_log_directory_name,
)
from barnabas.model.errors import (
    DecodeError,
    DiskError,
    DiskLost,
    LogDirectoryInUse,
    LogDirectoryRefused,
)
from barnabas.model.ids import TopicPartition
from barnabas.model.invariant import InvariantViolated
from barnabas.storage.disk import Disk

NO_BROKER_ID: Final = -1


class LogDirectory:
    """One of `log.dirs`."""

    __slots__ = (
        "disk",
        "error",
        "high_watermarks",
        "is_locked",
        "is_new",
        "log_start_offsets",
        "meta",
        "names",
        "path",
        "recovery_points",
        "was_clean",
    )

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.error: DiskError | None = None
        """Why it is offline; None while it is online."""
        self.is_new: bool = False
        """It did not exist and is made once all directories are found to be ours."""
        self.is_locked: bool = False
        self.meta: MetaProperties | None = None
        self.names: list[str] = []
        """The directories of logs in it, as found at the start."""
        self.was_clean: bool = False
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}

    @property
    def is_online(self) -> bool:
        return self.error is None

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """The offsets in a checkpoint; none when there is no such file."""
        path = self.file(name)
        if not self.disk.exists(path):
            return {}
        return decode_offset_checkpoint(self.disk.read_file(path))

    def write_checkpoint(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        self.disk.write_file(self.file(name), encode_offset_checkpoint(offsets))


class LogDirectories:
    """All of `log.dirs`, in the order of the setting."""

    __slots__ = ("directories", "disk")

    def __init__(self, disk: Disk, paths: Sequence[str]) -> None:
        self.disk = disk
        self.directories = [LogDirectory(disk, path.rstrip("/") or "/") for path in paths]

    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_online]

    def offline(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if not directory.is_online]

    def by_path(self, path: str) -> LogDirectory:
        """The directory of a log that is in one of them."""
        for directory in self.directories:
            if directory.path == path:
                return directory
        raise InvariantViolated(f"{path} is none of the log directories")

    # Whose they are

    def inspect(self) -> None:
        """Look at every directory without changing anything.

        `LogDirectoryRefused` for one that is not a broker's of ZooKeeper mode; a directory that
        cannot be read goes offline, and `DiskLost` when none is left.
        """
        paths = [directory.path for directory in self.directories]
        doubles = sorted({path for path in paths if paths.count(path) > 1})
        if doubles:
            raise LogDirectoryRefused(f"log.dirs names {', '.join(doubles)} more than once")
        for directory in self.directories:
            try:
                self._inspect(directory)
            except DiskError as error:
                directory.error = error
        self.check_any_left()
        self._check_same("cluster.id", [_cluster_id(one) for one in self.online()])
        self._check_same("broker.id", [_broker_id(one) for one in self.online()])

    def check_any_left(self) -> None:
        if not self.online():
            failed = self.directories[-1]
            raise DiskLost(failed.path, f"no log directory is left; the last one: {failed.error}")

    def _inspect(self, directory: LogDirectory) -> None:
        if not self.disk.exists(directory.path):
            directory.is_new = True
            return
        lock = directory.file(LOCK_FILE)
        holder = self.disk.lock_holder(lock)
        if holder is not None:
            raise LogDirectoryInUse(f"{lock} is already locked by {holder}")
        for name in self.disk.list_directory(directory.path):
            self._inspect_name(directory, name)
        if self.disk.exists(directory.file(META_PROPERTIES_FILE)):
            self._inspect_meta(directory)

    def _inspect_name(self, directory: LogDirectory, name: str) -> None:
        path = directory.file(name.rstrip("/@"))
        if name.endswith("@"):
            raise _refused_link(path)
        if not name.endswith("/"):
            return
        name = name[:-1]
        if name == REMOTE_LOG_INDEX_CACHE:
            return
        found = parse_log_directory_name(name)
        if found is None:
            raise LogDirectoryRefused(
                f"{path} is no log; found {name}, expected directories named topic-partition "
                "(or topic-partition.id-delete)"
            )
        if found.topic_partition.topic == CLUSTER_METADATA_TOPIC:
            raise LogDirectoryRefused(
                f"{path} is the metadata log of a KRaft cluster; "
                "expected the log directory of a broker in ZooKeeper mode"
            )
        for inner in self.disk.list_directory(path):
            if inner.endswith("@"):
                raise _refused_link(f"{path}/{inner[:-1]}")
        directory.names.append(name)

    def _inspect_meta(self, directory: LogDirectory) -> None:
        path = directory.file(META_PROPERTIES_FILE)
        try:
            meta = decode_meta_properties(self.disk.read_file(path), path)
        except DecodeError as error:
            raise LogDirectoryRefused(str(error)) from error
        if meta.version != ZOOKEEPER_VERSION:
            raise LogDirectoryRefused(
                f"{path} was written by KRaft: found version={meta.version}, "
                f"expected version={ZOOKEEPER_VERSION} (ZooKeeper mode)"
            )
        directory.meta = meta

    def _check_same(self, key: str, found: list[tuple[str, str]]) -> None:
        values = sorted({value for _, value in found if value})
        if len(values) > 1:
            places = ", ".join(f"{value} in {path}" for path, value in found if value)
            raise LogDirectoryRefused(
                f"the log directories belong to different brokers: found {key}={places}; "
                "expected the same in all"
            )

    @property
    def stored_cluster_id(self) -> str | None:
        """The cluster the directories belong to; None for new ones."""
        for directory in self.online():
            if directory.meta is not None and directory.meta.cluster_id is not None:
                return directory.meta.cluster_id
        return None

    @property
    def stored_broker_id(self) -> int | None:
        """The broker the directories belong to; None for new ones."""
        for directory in self.online():
            if directory.meta is not None and directory.meta.broker_id is not None:
                return directory.meta.broker_id
        return None

    def check_owner(self, cluster_id: str, broker_id: int) -> None:
        """Refuse directories of another cluster or broker; `broker_id` is -1 if not set."""
        stored = self.stored_cluster_id
        if stored is not None and stored != cluster_id:
            raise LogDirectoryRefused(
                f"the log directories belong to another cluster: found cluster.id={stored} in "
                f"{META_PROPERTIES_FILE}, expected {cluster_id} (the metadata store's)"
            )
        stored_id = self.stored_broker_id
        if broker_id != NO_BROKER_ID and stored_id is not None and stored_id != broker_id:
            raise LogDirectoryRefused(
                f"the log directories belong to another broker: found broker.id={stored_id} in "
                f"{META_PROPERTIES_FILE}, expected {broker_id} (the configured one)"
            )

    # Taking and leaving them

    def lock_all(self) -> None:
        """Make the missing directories and take every lock; `LogDirectoryInUse` names who has
        one already, and then none is kept."""
        for directory in self.online():
            try:
                if directory.is_new:
                    self.disk.make_directory(directory.path)
                    self.disk.sync_directory(directory.path.rpartition("/")[0] or "/")
                self.disk.lock(directory.file(LOCK_FILE))
                directory.is_locked = True
            except DiskError as error:
                directory.error = error
            except LogDirectoryInUse:
                self.unlock_all()
                raise
        self.check_any_left()

    def unlock_all(self) -> None:
        for directory in self.directories:
            self.unlock(directory)

    def unlock(self, directory: LogDirectory) -> None:
        if not directory.is_locked:
            return
        directory.is_locked = False
        try:
            self.disk.unlock(directory.file(LOCK_FILE))
        except DiskError as error:
            directory.error = directory.error or error

    def write_meta(self, cluster_id: str, broker_id: int) -> None:
        """Say in every directory that does not say it yet whose it is."""
        for directory in self.online():
            stored = directory.meta
            wanted = MetaProperties(
                ZOOKEEPER_VERSION, cluster_id, broker_id, stored and stored.directory_id
            )
            if wanted == stored:
                continue
            try:
                path = directory.file(META_PROPERTIES_FILE)
                self.disk.write_file(path, encode_meta_properties(wanted))
                directory.meta = wanted
            except DiskError as error:
                directory.error = error
        self.check_any_left()

    def read_checkpoints(self) -> list[str]:
        """Learn how every directory was left; the complaints about files that were passed over.

        The mark of a clean stop is removed at once: if this start is interrupted, the next one
        must not believe it. Lost recovery points and start offsets cost time, not records.
        """
        complaints: list[str] = []
        for directory in self.online():
            try:
                clean = directory.file(CLEAN_SHUTDOWN_FILE)
                directory.was_clean = self.disk.exists(clean)
                directory.recovery_points = _tolerant(directory, RECOVERY_POINT_FILE, complaints)
                directory.log_start_offsets = _tolerant(
                    directory, LOG_START_OFFSET_FILE, complaints
                )
                directory.high_watermarks = directory.read_checkpoint(HIGH_WATERMARK_FILE)
                if directory.was_clean:
                    self.disk.remove_file(clean)
                    self.disk.sync_directory(directory.path)
            except DecodeError as error:
                directory.error = DiskLost(directory.file(HIGH_WATERMARK_FILE), str(error))
            except DiskError as error:
                directory.error = error
        self.check_any_left()
        return complaints

    def mark_clean(self, directory: LogDirectory, broker_epoch: int) -> None:
        """Tell the next start that nothing has to be recovered."""
        path = directory.file(CLEAN_SHUTDOWN_FILE)
        self.disk.write_file(path, encode_clean_shutdown(broker_epoch))


def _refused_link(path: str) -> LogDirectoryRefused:
    return LogDirectoryRefused(
        f"{path} is a symbolic link; a log directory holds real directories and files, "
        "because a link may lead to files of another broker"
    )


def _tolerant(
    directory: LogDirectory, name: str, complaints: list[str]
) -> dict[TopicPartition, int]:
    """A checkpoint that may be passed over when it cannot be read."""
    try:
        return directory.read_checkpoint(name)
    except DecodeError as error:
        complaints.append(f"{directory.file(name)}: {error}; taken for empty")
        return {}


def _cluster_id(directory: LogDirectory) -> tuple[str, str]:
    meta = directory.meta
    return directory.path, "" if meta is None or meta.cluster_id is None else meta.cluster_id


def _broker_id(directory: LogDirectory) -> tuple[str, str]:
    meta = directory.meta
    return directory.path, "" if meta is None or meta.broker_id is None else str(meta.broker_id)
