"""The settings of a broker and of a topic: Kafka's keys as attributes, with 3.9's defaults."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import cast

from barnabas.model.config_definition import (
    ConfigKey,
    ConfigValue,
    Mark,
    UpdateMode,
    default_of,
    parse,
)
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.errors import ConfigRefused
from barnabas.model.listeners import (
    Listener,
    check_distinct,
    parse_listeners,
    parse_protocol_map,
)
from barnabas.model.topic_config_keys import TOPIC_KEYS

UNLIMITED = 2**63 - 1
UNLIMITED_RETENTION = -1
RETENTION_KEYS = ("retention.ms", "retention.bytes")
"""Kafka's word for "never" and "no limit" in a long."""

TIERED_STORAGE_SWITCHES = (
    "remote.storage.enable",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
)
"""Topic keys that Kafka refuses to switch on where the broker has no tiered storage."""

_MAX_INT = 2**31 - 1
_OFFSETS_CODEC = BROKER_KEYS["offsets.topic.compression.codec"]
_LAST_CODEC = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What one broker was told to be; a key it does not honour has no attribute.

    `explicit` holds what was set, as text, by Kafka's name of the key, unknown keys left out;
    `dynamic` and `dynamic_default` what was set at run time, for this broker and for all.
    """

    broker_id: int = -1
    """-1 asks for an id from /brokers/seqid, above `reserved_broker_max_id`."""
    broker_id_generation_enable: bool = True
    reserved_broker_max_id: int = 1000
    broker_rack: str | None = None
    listeners: tuple[Listener, ...] = (Listener("PLAINTEXT", "", 9092),)
    advertised_listeners: tuple[Listener, ...] = (Listener("PLAINTEXT", "", 9092),)
    """What is registered; the same as `listeners` unless set. An empty host is this machine's."""
    inter_broker_listener_name: str = "PLAINTEXT"
    barnabas_metadata_dir: str = "/tmp/kafka-logs-metadata"
    """Where the embedded metadata store lives; beside the first log directory unless set."""

    barnabas_create_topic_policy: str | None = None
    """The entry point that may refuse new topics; in the place of Kafka's Java class."""

    socket_request_max_bytes: int = 104857600
    socket_listen_backlog_size: int = 50
    max_connections: int = _MAX_INT
    max_connections_per_ip: int = _MAX_INT
    max_connections_per_ip_overrides: dict[str, int] = field(default_factory=dict[str, int])
    connections_max_idle_ms: int = 600000
    connection_failed_authentication_delay_ms: int = 100
    fetch_max_bytes: int = 57671680
    max_incremental_fetch_session_cache_slots: int = 1000

    num_partitions: int = 1
    default_replication_factor: int = 1
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True

    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1800000
    group_initial_rebalance_delay_ms: int = 3000
    group_max_size: int = _MAX_INT
    offset_metadata_max_bytes: int = 4096
    offsets_topic_replication_factor: int = 3
    offsets_topic_num_partitions: int = 50
    offsets_topic_segment_bytes: int = 104857600
    offsets_topic_compression_codec: int = 0
    offsets_retention_minutes: int = 10080
    offsets_retention_check_interval_ms: int = 600000
    offsets_commit_timeout_ms: int = 5000

    controller_socket_timeout_ms: int = 30000
    replica_lag_time_max_ms: int = 30000
    replica_socket_timeout_ms: int = 30000
    replica_fetch_max_bytes: int = 1048576
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_backoff_ms: int = 1000
    replica_fetch_min_bytes: int = 1
    replica_fetch_response_max_bytes: int = 10485760
    replica_high_watermark_checkpoint_interval_ms: int = 5000

    producer_id_expiration_ms: int = 86400000
    producer_id_expiration_check_interval_ms: int = 600000

    log_dirs: tuple[str, ...] = ("/tmp/kafka-logs",)
    log_initial_task_delay_ms: int = 30000
    log_retention_check_interval_ms: int = 300000
    log_flush_scheduler_interval_ms: int = UNLIMITED
    log_flush_offset_checkpoint_interval_ms: int = 60000
    log_flush_start_offset_checkpoint_interval_ms: int = 60000

    # What follows is what a topic gets unless it has its own value: see TopicConfig.
    log_segment_bytes: int = 1073741824
    log_roll_ms: int | None = None
    log_roll_hours: int = 168
    log_roll_jitter_ms: int | None = None
    log_roll_jitter_hours: int = 0
    log_retention_ms: int | None = None
    log_retention_minutes: int | None = None
    log_retention_hours: int = 168
    log_retention_bytes: int = -1
    log_cleanup_policy: tuple[str, ...] = ("delete",)
    log_index_size_max_bytes: int = 10485760
    log_index_interval_bytes: int = 4096
    log_flush_interval_messages: int = UNLIMITED
    log_flush_interval_ms: int | None = None
    log_segment_delete_delay_ms: int = 60000
    log_preallocate: bool = False
    log_message_format_version: str = "3.0-IV1"
    log_message_timestamp_type: str = "CreateTime"
    log_message_timestamp_difference_max_ms: int = UNLIMITED
    log_message_timestamp_before_max_ms: int = UNLIMITED
    log_message_timestamp_after_max_ms: int = UNLIMITED
    log_message_downconversion_enable: bool = True
    log_cleaner_delete_retention_ms: int = 86400000
    log_cleaner_min_compaction_lag_ms: int = 0
    log_cleaner_max_compaction_lag_ms: int = UNLIMITED
    log_cleaner_min_cleanable_ratio: float = 0.5
    log_local_retention_ms: int = -2
    log_local_retention_bytes: int = -2
    message_max_bytes: int = 1048588
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3

    explicit: Mapping[str, str] = field(default_factory=dict[str, str])
    dynamic: Mapping[str, str] = field(default_factory=dict[str, str])
    dynamic_default: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def resolve(settings: Mapping[str, str]) -> "BrokerConfig":
        """The settings as Kafka reads them; `ConfigRefused` for the first that cannot be."""
        explicit = {name: text for name, text in settings.items() if name in BROKER_KEYS}
        _check_offsets_codec(explicit)
        _follow_node_id(explicit)
        values = {name: parse(BROKER_KEYS[name], text) for name, text in explicit.items()}
        attributes: dict[str, object] = {"explicit": explicit}
        for name, value in values.items():
            attribute = name.replace(".", "_")
            if attribute in _PLAIN_ATTRIBUTES:
                attributes[attribute] = value
        attributes["log_dirs"] = _log_dirs(explicit)
        attributes.update(_listener_attributes(explicit))
        attributes["max_connections_per_ip_overrides"] = _per_ip_overrides(explicit)
        attributes["barnabas_metadata_dir"] = _metadata_dir(explicit)
        config = BrokerConfig(**attributes)  # pyright: ignore[reportArgumentType]
        _check_broker(config)
        return config

    def with_dynamic(self, default: Mapping[str, str], own: Mapping[str, str]) -> "BrokerConfig":
        """This configuration, read at the start, below what was set since: for all, for one.

        What cannot be changed at run time or has no valid value is passed over, as somebody else
        wrote it; `ConfigRefused` when the values exclude each other.
        """
        taken_default, taken = _taken(default), _taken(own)
        values = {
            name.replace(".", "_"): parse(BROKER_KEYS[name], text)
            for name, text in {**taken_default, **taken}.items()
        }
        config = replace(
            self,
            dynamic=taken,
            dynamic_default=taken_default,
            **values,  # pyright: ignore[reportArgumentType]
        )
        _check_broker(config)
        return config

    @property
    def inter_broker_listener(self) -> Listener:
        """The advertised end point that other brokers, and this one, connect to."""
        return next(
            listener
            for listener in self.advertised_listeners
            if listener.name == self.inter_broker_listener_name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The settings that hold for one topic: its own, else its broker's, else Kafka's."""

    segment_bytes: int = 1073741824
    segment_ms: int = 604800000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10485760
    flush_messages: int = UNLIMITED
    flush_ms: int = UNLIMITED
    retention_bytes: int = -1
    retention_ms: int = 604800000
    max_message_bytes: int = 1048588
    index_interval_bytes: int = 4096
    delete_retention_ms: int = 86400000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = UNLIMITED
    file_delete_delay_ms: int = 60000
    min_cleanable_dirty_ratio: float = 0.5
    cleanup_policy: tuple[str, ...] = ("delete",)
    unclean_leader_election_enable: bool = False
    min_insync_replicas: int = 1
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    preallocate: bool = False
    message_format_version: str = "3.0-IV1"
    message_timestamp_type: str = "CreateTime"
    message_timestamp_difference_max_ms: int = UNLIMITED
    message_timestamp_before_max_ms: int = UNLIMITED
    message_timestamp_after_max_ms: int = UNLIMITED
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    message_downconversion_enable: bool = True
    remote_storage_enable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False

    @staticmethod
    def resolve(broker_config: BrokerConfig, overrides: Mapping[str, str]) -> "TopicConfig":
        """What holds for a topic with these overrides; they were checked when they were set.

        An override that is unknown or malformed all the same (somebody else wrote the znode) is
        passed over: the broker's value holds, as a topic must not become unusable by it. Where it
        was about retention nothing is deleted: it may have been meant to stay.
        """
        values: dict[str, ConfigValue] = {}
        for name, key in TOPIC_KEYS.items():
            value = broker_default(key, broker_config)
            text = overrides.get(name)
            if text is not None:
                try:
                    value = parse(key, text)
                except ConfigRefused:
                    value = UNLIMITED_RETENTION if name in RETENTION_KEYS else value
            values[name.replace(".", "_")] = value
        return TopicConfig(**values)  # pyright: ignore[reportArgumentType]

    @property
    def timestamp_before_max_ms(self) -> int:
        """How far behind the broker's clock a record may be; the older key stands in for it."""
        if self.message_timestamp_before_max_ms != UNLIMITED:
            return self.message_timestamp_before_max_ms
        return self.message_timestamp_difference_max_ms

    @property
    def timestamp_after_max_ms(self) -> int:
        """How far ahead of the broker's clock a record may be; the older key stands in for it."""
        if self.message_timestamp_after_max_ms != UNLIMITED:
            return self.message_timestamp_after_max_ms
        return self.message_timestamp_difference_max_ms


def check_topic_overrides(overrides: Mapping[str, str]) -> None:
    """Refuse what CreateTopics and the config APIs refuse: an unknown key or a bad value."""
    values = {name: default_of(key) for name, key in TOPIC_KEYS.items()}
    for name, text in overrides.items():
        key = TOPIC_KEYS.get(name)
        if key is None:
            raise ConfigRefused(name, text, "is no topic configuration")
        values[name] = parse(key, text)
    if cast(int, values["min.compaction.lag.ms"]) > cast(int, values["max.compaction.lag.ms"]):
        raise ConfigRefused(
            "min.compaction.lag.ms",
            str(values["min.compaction.lag.ms"]),
            f"is above max.compaction.lag.ms={values['max.compaction.lag.ms']}",
        )
    for name in (
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    ):
        if values[name]:
            raise ConfigRefused(name, "true", "needs tiered storage, which this broker has not")


def broker_default(key: ConfigKey, broker_config: BrokerConfig) -> ConfigValue:
    """The value of a topic key for a topic without one: the first of its synonyms that is set."""
    for synonym in key.synonyms:
        value = cast(ConfigValue, getattr(broker_config, synonym.name.replace(".", "_")))
        if value is None:
            continue
        if key.name == "retention.ms" and isinstance(value, int) and value < 0:
            return -1
        return value * synonym.factor if synonym.factor != 1 and isinstance(value, int) else value
    return default_of(key)


def to_text(value: ConfigValue) -> str | None:
    """A value as DescribeConfigs and the znodes write it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case str() | int() | float():
            return str(value)


_DERIVED_ATTRIBUTES = (
    "listeners",
    "advertised_listeners",
    "inter_broker_listener_name",
    "barnabas_metadata_dir",
    "max_connections_per_ip_overrides",
    "log_dirs",
    "explicit",
    "dynamic",
    "dynamic_default",
)
"""Attributes that are more than one key's parsed value."""

_PLAIN_ATTRIBUTES = frozenset(
    attribute.name
    for attribute in fields(BrokerConfig)
    if attribute.name not in _DERIVED_ATTRIBUTES
)


RUN_TIME_KEYS = frozenset(
    synonym.name
    for topic_key in TOPIC_KEYS.values()
    if topic_key.mark is Mark.HONOURED and topic_key.name != "unclean.leader.election.enable"
    for synonym in topic_key.synonyms
    if BROKER_KEYS[synonym.name].mode is not UpdateMode.READ_ONLY
) | {"producer.id.expiration.ms"}
"""The broker keys that this broker takes while it runs: what topics fall back on, above all."""


def _taken(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a broker's config node that can be followed."""
    taken: dict[str, str] = {}
    for name, text in settings.items():
        if name in RUN_TIME_KEYS:
            with suppress(ConfigRefused):
                parse(BROKER_KEYS[name], text)
                taken[name] = text
    return taken


def _check_offsets_codec(explicit: dict[str, str]) -> None:
    """A number that stands for no codec is refused at start, as Kafka does."""
    codec = explicit.get("offsets.topic.compression.codec")
    if codec is not None and not 0 <= cast(int, parse(_OFFSETS_CODEC, codec)) <= _LAST_CODEC:
        raise ConfigRefused(
            _OFFSETS_CODEC.name, codec, f"is no compression type: 0 (none) to {_LAST_CODEC} (zstd)"
        )


def _follow_node_id(explicit: dict[str, str]) -> None:
    """node.id is another name of broker.id; whichever is set stands for both."""
    broker_id, node_id = explicit.get("broker.id"), explicit.get("node.id")
    if broker_id is not None and node_id is not None:
        ids = [parse(BROKER_KEYS["broker.id"], text) for text in (broker_id, node_id)]
        if ids[0] != ids[1]:
            raise ConfigRefused(
                "node.id",
                node_id,
                f"broker.id={broker_id} is another id, and the two keys name the same thing",
                f"remove node.id or broker.id; broker.id={broker_id} is Kafka's key with ZooKeeper",
            )
    for name, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if name in explicit and other not in explicit:
            explicit[other] = explicit[name]


def _text(explicit: Mapping[str, str], name: str) -> str | None:
    """The text of a key, its default where it is not set."""
    text = explicit.get(name)
    return BROKER_KEYS[name].default if text is None else text.strip()


def _log_dirs(explicit: Mapping[str, str]) -> tuple[str, ...]:
    listed = _text(explicit, "log.dirs")
    text = listed if listed is not None else str(_text(explicit, "log.dir"))
    directories = tuple(entry.strip() for entry in text.split(",") if entry.strip())
    if not directories:
        raise ConfigRefused("log.dirs", text, "names no directory")
    return directories


def _metadata_dir(explicit: Mapping[str, str]) -> str:
    given = _text(explicit, "barnabas.metadata.dir")
    directories = _log_dirs(explicit)
    if given is None:
        return directories[0].rstrip("/") + "-metadata"
    for directory in directories:
        if (given.rstrip("/") + "/").startswith(directory.rstrip("/") + "/"):
            raise ConfigRefused("barnabas.metadata.dir", given, f"is inside log.dirs ({directory})")
    return given


def _per_ip_overrides(explicit: Mapping[str, str]) -> dict[str, int]:
    name = "max.connections.per.ip.overrides"
    text = _text(explicit, name) or ""
    limits: dict[str, int] = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        address, colon, count = entry.rpartition(":")
        if not colon or not count.strip().isdecimal() or int(count) > _MAX_INT:
            raise ConfigRefused(name, text, f"{entry} is not a host and a number of connections")
        limits[address.strip()] = int(count)
    return limits


def _listener_attributes(explicit: Mapping[str, str]) -> dict[str, object]:
    protocols = parse_protocol_map(
        "listener.security.protocol.map", _text(explicit, "listener.security.protocol.map") or ""
    )
    text = _text(explicit, "listeners") or ""
    listeners = parse_listeners("listeners", text, protocols)
    if not listeners:
        raise ConfigRefused("listeners", text, "names no listener")
    check_distinct("listeners", text, listeners, are_ports_distinct=True)
    told = _text(explicit, "advertised.listeners")
    advertised_text = text if told is None else told
    advertised = parse_listeners("advertised.listeners", advertised_text, protocols)
    if not advertised:
        raise ConfigRefused("advertised.listeners", advertised_text, "names no listener")
    check_distinct("advertised.listeners", advertised_text, advertised, are_ports_distinct=False)
    known = [listener.name for listener in listeners]
    for listener in advertised:
        if listener.name not in known:
            raise ConfigRefused(
                "advertised.listeners", advertised_text, f"{listener.name} is not in listeners"
            )
        if listener.host in ("0.0.0.0", "::"):
            raise _unreachable(listener, is_advertised=told is not None)
    return {
        "listeners": listeners,
        "advertised_listeners": advertised,
        "inter_broker_listener_name": _inter_broker_listener_name(explicit, advertised),
    }


def _unreachable(listener: Listener, *, is_advertised: bool) -> ConfigRefused:
    """To listen on every interface is fine; to tell clients to connect to all of them is not."""
    example = f"advertised.listeners={listener._replace(host='localhost')}"
    fix = f"{example}    (or the name by which clients reach this machine)"
    if is_advertised:
        reason = f"no client can connect to {listener.host}"
        return ConfigRefused("advertised.listeners", str(listener), reason, fix)
    reason = (
        f"clients are told to connect to {listener.host}, which none can, unless "
        "advertised.listeners names another address"
    )
    return ConfigRefused("listeners", str(listener), reason, fix)


def _inter_broker_listener_name(
    explicit: Mapping[str, str], advertised: tuple[Listener, ...]
) -> str:
    name = _text(explicit, "inter.broker.listener.name")
    protocol = explicit.get("security.inter.broker.protocol")
    fix = f"inter.broker.listener.name={advertised[0].name}"
    if name is not None and protocol is not None:
        raise ConfigRefused(
            "inter.broker.listener.name",
            name,
            "cannot be set beside security.inter.broker.protocol",
            "remove security.inter.broker.protocol",
        )
    wanted = str(
        _text(explicit, "security.inter.broker.protocol") if name is None else name
    ).upper()
    if wanted in [listener.name for listener in advertised]:
        return wanted
    if name is not None:
        reason = "is not among the advertised listeners"
        raise ConfigRefused("inter.broker.listener.name", name, reason, fix)
    if protocol is not None:
        reason = "no advertised listener has the name of this protocol"
        fix = f"{fix}    (in its place)"
        raise ConfigRefused("security.inter.broker.protocol", protocol, reason, fix)
    raise ConfigRefused(
        "advertised.listeners" if "advertised.listeners" in explicit else "listeners",
        ",".join(str(listener) for listener in advertised),
        f"brokers connect to each other on the listener {wanted}, and none has that name",
        fix,
    )


def _check_broker(config: BrokerConfig) -> None:
    """What no key can say alone."""
    lowest = -1 if config.broker_id_generation_enable else 0
    if config.broker_id < lowest:
        is_asked_for = config.broker_id == -1
        raise ConfigRefused(
            "broker.id",
            str(config.broker_id),
            "asks for an id to be generated, and broker.id.generation.enable=false"
            if is_asked_for
            else f"must be at least {lowest}",
            "broker.id=1" + ("    (or remove broker.id.generation.enable)" * is_asked_for),
        )
    if config.broker_id_generation_enable and config.broker_id > config.reserved_broker_max_id:
        raise ConfigRefused(
            "broker.id",
            str(config.broker_id),
            f"is above reserved.broker.max.id={config.reserved_broker_max_id}",
        )
    _check_log_times(config)
    if config.replica_fetch_wait_max_ms > config.replica_socket_timeout_ms:
        raise ConfigRefused(
            "replica.fetch.wait.max.ms",
            str(config.replica_fetch_wait_max_ms),
            f"is above replica.socket.timeout.ms={config.replica_socket_timeout_ms}",
        )
    if config.replica_fetch_wait_max_ms > config.replica_lag_time_max_ms:
        raise ConfigRefused(
            "replica.fetch.wait.max.ms",
            str(config.replica_fetch_wait_max_ms),
            f"is above replica.lag.time.max.ms={config.replica_lag_time_max_ms}",
        )
    if 0 <= config.connections_max_idle_ms <= config.connection_failed_authentication_delay_ms:
        raise ConfigRefused(
            "connections.max.idle.ms",
            str(config.connections_max_idle_ms),
            "is not above connection.failed.authentication.delay.ms="
            f"{config.connection_failed_authentication_delay_ms}",
        )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise ConfigRefused(
            "max.connections.per.ip", "0", "lets nobody in without max.connections.per.ip.overrides"
        )


def _check_log_times(config: BrokerConfig) -> None:
    for key, value in (
        ("log.retention.ms", config.log_retention_ms),
        ("log.retention.minutes", config.log_retention_minutes),
        ("log.retention.hours", config.log_retention_hours),
    ):
        if value is not None:
            if value == 0:
                raise ConfigRefused(key, "0", "must be at least 1, or negative for unlimited")
            break
    if config.log_roll_ms is not None and config.log_roll_ms < 1:
        raise ConfigRefused("log.roll.ms", str(config.log_roll_ms), "must be at least 1")
    if config.log_roll_jitter_ms is not None and config.log_roll_jitter_ms < 0:
        raise ConfigRefused("log.roll.jitter.ms", str(config.log_roll_jitter_ms), "is negative")
