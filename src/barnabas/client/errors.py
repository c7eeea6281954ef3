"""Why an operation gave up, with what was tried."""

from barnabas.client.steps import Address, FailureKind
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import BrokerId


class ClientError(BarnabasError):
    """An operation that did not come to its end."""


class ClusterUnreachable(ClientError):
    """None of the addresses that were given answered."""

    def __init__(
        self, reasons: tuple[tuple[Address, FailureKind, str], ...], tries: int, elapsed_ms: int
    ) -> None:
        self.reasons = reasons
        self.tries = tries
        self.elapsed_ms = elapsed_ms
        super().__init__(
            f"nobody answered at {', '.join(str(reason[0]) for reason in reasons)} "
            f"({tries} {'try' if tries == 1 else 'tries'} in {elapsed_ms / 1000:.1f} s)"
        )


class BrokerUnreachable(ClientError):
    """The cluster named a broker at an address where nobody answers from here."""

    def __init__(
        self, broker_id: BrokerId, address: Address, reason: str, tries: int, elapsed_ms: int
    ) -> None:
        self.broker_id = broker_id
        self.address = address
        self.reason = reason
        self.tries = tries
        self.elapsed_ms = elapsed_ms
        super().__init__(
            f"broker {broker_id} does not answer at {address}, the address that it advertises "
            f"({tries} {'try' if tries == 1 else 'tries'} in {elapsed_ms / 1000:.1f} s)"
        )


class RequestRefused(ClientError):
    """A broker answered with an error that will not go away by asking again, or did not in time."""

    def __init__(self, what: str, code: ErrorCode, message: str | None = None) -> None:
        self.what = what
        self.code = code
        self.message = describe(code) if message is None else message
        super().__init__(f"{what}: {self.message or describe(code)} ({code.name})")


class ApiUnsupported(ClientError):
    """The broker has no version of the API that is known here."""

    def __init__(self, address: Address, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"the broker at {address} cannot do it: {reason}")


def code_of(number: int) -> ErrorCode:
    """The code of a number from the wire; one that is not known here is an unknown error."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def describe(code: ErrorCode) -> str:
    """A code in words, where the broker sent none."""
    return code.name.lower().replace("_", " ")
