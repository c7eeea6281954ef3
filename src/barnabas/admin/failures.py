"""What the wire client gave up on, told to people: cause, and the command that mends it."""

from collections.abc import Iterable
from difflib import get_close_matches

from barnabas.client.errors import (
    ApiUnsupported,
    BrokerUnreachable,
    ClusterUnreachable,
    RequestRefused,
    describe,
)
from barnabas.client.steps import FailureKind
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.node.output import EXIT_REFUSED, EXIT_UNREACHABLE, EXIT_USAGE, ProgramError

REMEDIES = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "barnabas topics describe {item}",
    ErrorCode.INVALID_REPLICATION_FACTOR: "barnabas status",
    ErrorCode.INVALID_CONFIG: "barnabas configs describe {what} --all",
    ErrorCode.NOT_CONTROLLER: "barnabas status",
    ErrorCode.NOT_ENOUGH_REPLICAS: "barnabas topics describe {item}",
    ErrorCode.NON_EMPTY_GROUP: "barnabas groups describe {item}",
    ErrorCode.GROUP_ID_NOT_FOUND: "barnabas groups list",
}
"""What to look at after a refusal."""


def to_program_error(error: BarnabasError) -> ProgramError:
    """The four lines of an error of the wire client."""
    if isinstance(error, ClusterUnreachable):
        return _nobody_answered(error)
    if isinstance(error, BrokerUnreachable):
        return ProgramError(
            str(error),
            cause=f"{error.reason}; clients connect to what advertised.listeners says",
            fix="set advertised.listeners of that broker to an address that is reachable from here",
            see="broker-unreachable",
            exit_code=EXIT_UNREACHABLE,
        )
    if isinstance(error, ApiUnsupported):
        return ProgramError(str(error), see="not-served")
    if isinstance(error, RequestRefused):
        return refusal(error.what, error.code, error.message)
    return ProgramError(str(error), see="refused")


def _nobody_answered(error: ClusterUnreachable) -> ProgramError:
    unreadable = [reason for _, kind, reason in error.reasons if kind is FailureKind.UNREADABLE]
    lost = [reason for _, kind, reason in error.reasons if kind is FailureKind.LOST]
    fix = "barnabas up, or name the cluster: --bootstrap-server HOST:PORT"
    if unreadable:
        fix = "--bootstrap-server with a port of a PLAINTEXT listener"
    elif lost:
        fix = "look at that port: a listener with TLS or SASL closes such connections"
    return ProgramError(
        str(error),
        cause="; ".join(f"{address}: {reason}" for address, _, reason in error.reasons),
        fix=fix,
        see="cluster-unreachable",
        exit_code=EXIT_UNREACHABLE,
    )


def refusal(what: str, code: ErrorCode, message: str) -> ProgramError:
    """A broker said no."""
    item = what.rpartition(" ")[2]
    return ProgramError(
        f"{what}: {message or describe(code)}",
        cause=f"the broker answered {code.name}",
        fix=REMEDIES.get(code, "").format(item=item, what=what),
        see="refused",
    )


def unknown_topic(name: str, known: Iterable[str]) -> ProgramError:
    """A topic that is not there, and which one may have been meant."""
    near = get_close_matches(name, list(known), n=1)
    return ProgramError(
        f"there is no topic {name}",
        cause=f"did you mean {near[0]}?" if near else "the cluster has none of that name",
        fix=f"barnabas topics describe {near[0]}" if near else f"barnabas topics create {name}",
        see="unknown-topic",
    )


def guarded(what: str, cause: str, fix: str) -> ProgramError:
    """Something that would do harm was not done."""
    return ProgramError(what, cause=cause, fix=fix, see="guard", exit_code=EXIT_REFUSED)


def misused(what: str, fix: str) -> ProgramError:
    """The command line asks for nothing that can be done."""
    return ProgramError(what, fix=fix, see="usage", exit_code=EXIT_USAGE)
