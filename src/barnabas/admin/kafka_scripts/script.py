"""What Kafka's scripts share: the connection, the client's settings, refusals in Kafka's words."""

from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.admin.addresses import parse_addresses
from barnabas.admin.kafka_scripts.options import BadOption, Options, ScriptEnded
from barnabas.client.errors import describe
from barnabas.client.retries import RetryPolicy
from barnabas.client.topics import Verdict
from barnabas.formats.properties import read_properties
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.node.blocking_client import BlockingClient
from barnabas.node.output import EXIT_FAILED, EXIT_OK, say_beside, warn

KAFKA_VERSION = "3.9.2"
"""Whose flags, output and messages these are."""

MESSAGES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is disabled.",
    ErrorCode.INVALID_REQUEST: "This most likely occurs because of a request being malformed by "
    "the client library or the message was sent to an incompatible broker. See the broker logs "
    "for more details.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the "
    "consumer group is actively subscribed to it.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
}
"""What Kafka's client says where the broker sent a code alone."""

EXCEPTIONS = {
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
}
"""Names of Java's exceptions that are not the code's with other letters."""


def run_script(script: Callable[[Sequence[str]], None], arguments: Sequence[str]) -> int:
    """Run a script; its exit code."""
    try:
        script(arguments)
    except ScriptEnded as end:
        return end.exit_code
    except BadOption as problem:
        say_beside(str(problem))
        return EXIT_FAILED
    except BrokenPipeError:
        return EXIT_OK
    return EXIT_OK


def message_of(code: ErrorCode, message: str) -> str:
    """The sentence that goes with a refusal."""
    return MESSAGES.get(code, message) if message == describe(code) else message


def sentence(verdict: Verdict) -> str:
    """A verdict in the words of Kafka's client."""
    return message_of(verdict.code, verdict.message)


def exception_name(code: ErrorCode) -> str:
    """The class of the exception that Kafka's client makes of a code."""
    name = EXCEPTIONS.get(code)
    if name is None:
        name = "".join(word.capitalize() for word in code.name.split("_"))
        name = name if name.endswith("Exception") else f"{name}Exception"
    return f"org.apache.kafka.common.errors.{name}"


def connect(options: Options) -> BlockingClient:
    """A client for `--bootstrap-server`, with what `--command-config` says."""
    path = options.value("command-config")
    values: dict[str, str] = {}
    if path is not None:
        try:
            data = Path(path).read_bytes()
            values = {each.name: each.text for each in read_properties(data, path)}
        except (OSError, BarnabasError) as problem:
            raise BadOption(f"{path} cannot be read: {problem}") from problem
    timeout_ms = _take_number(values, "default.api.timeout.ms", 60_000)
    request_timeout_ms = _take_number(values, "request.timeout.ms", 30_000)
    client_id = values.pop("client.id", "adminclient-1")
    bootstrap = options.value("bootstrap-server") or values.pop("bootstrap.servers", "")
    if values.pop("security.protocol", "PLAINTEXT") != "PLAINTEXT":
        raise BadOption("security.protocol: TLS and SASL are not supported here")
    for key in values:
        warn(f"{path}: {key} has no effect here")
    try:
        addresses = parse_addresses(bootstrap)
    except ValueError as problem:
        raise BadOption(f"Invalid url in bootstrap.servers: {problem}") from problem
    policy = RetryPolicy(timeout_ms=timeout_ms, request_timeout_ms=request_timeout_ms)
    return BlockingClient(addresses, policy=policy, client_id=client_id)


def _take_number(values: dict[str, str], key: str, default: int) -> int:
    text = values.pop(key, str(default))
    if not text.isdigit() or int(text) == 0:
        raise BadOption(f"Invalid value {text} for configuration {key}")
    return int(text)
