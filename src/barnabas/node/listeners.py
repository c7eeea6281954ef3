"""The sockets a broker listens on, opened before anything else; or who holds the port."""

import errno
import os
import re
import socket
from collections.abc import Iterable, Mapping

from barnabas.model.listeners import Listener
from barnabas.node.output import EXIT_USAGE, ProgramError

_LISTENING = "0A"
"""The state of a listening socket in /proc/net/tcp."""
_SOCKET_LINK = re.compile(r"socket:\[(\d+)\]")


def listen(listeners: Iterable[Listener], backlog: int) -> list[tuple[Listener, socket.socket]]:
    """A listening socket for each listener, which is given the port it really has.

    Clients that come before the broker is ready wait in the kernel's queue.
    """
    bound: list[tuple[Listener, socket.socket]] = []
    try:
        for listener in listeners:
            sock = _listen_on(listener, backlog)
            bound.append((listener._replace(port=sock.getsockname()[1]), sock))
    except ProgramError:
        for _, sock in bound:
            sock.close()
        raise
    return bound


def _listen_on(listener: Listener, backlog: int) -> socket.socket:
    family, address = _address(listener)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        # An empty host is every interface of both families, as it is in Java.
        only_v6 = 0 if not listener.host else 1
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_v6)
    try:
        sock.bind(address)
        sock.listen(backlog)
    except OSError as problem:
        sock.close()
        raise _refusal(listener, problem) from None
    return sock


def _address(listener: Listener) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if not listener.host:
        if _has_ipv6():
            return socket.AF_INET6, ("::", listener.port)
        return socket.AF_INET, ("0.0.0.0", listener.port)
    try:
        found = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as problem:
        raise ProgramError(
            f"cannot listen on {listener}",
            cause=f"{listener.host} is no address of this machine: {problem.strerror}",
            fix=f"listeners={listener._replace(host='')}    (every interface)",
            see="cannot-listen",
        ) from None
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))


def _has_ipv6() -> bool:
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _refusal(listener: Listener, problem: OSError) -> ProgramError:
    if problem.errno == errno.EACCES:
        return ProgramError(
            f"cannot listen on {listener}",
            cause="this user may not open that port, as is usual below 1024",
            fix=f"listeners={listener._replace(port=9092)}",
            see="cannot-listen",
        )
    if problem.errno != errno.EADDRINUSE:
        return ProgramError(
            f"cannot listen on {listener}",
            cause=problem.strerror or str(problem),
            fix=f"listeners={listener._replace(host='')}    (every interface)",
            see="cannot-listen",
        )
    holder = port_holder(listener.port)
    cause = "the port is taken" + (f" by {holder[1]} (process {holder[0]})" if holder else "")
    other = listener.port + 1 if listener.port < 65535 else 0
    return ProgramError(
        f"cannot listen on {listener}",
        cause=cause,
        fix=f"listeners={listener._replace(port=other)}",
        see="port-taken",
    )


def by_address(limits: Mapping[str, int]) -> dict[str, int]:
    """Limits of hosts by every address that each of them has: connections come from addresses."""
    found: dict[str, int] = {}
    for host, limit in limits.items():
        try:
            for _, _, _, _, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                found[str(address[0])] = limit
        except socket.gaierror as problem:
            raise ProgramError(
                f"max.connections.per.ip.overrides={host}:{limit}",
                cause=f"{host} cannot be resolved from here: {problem.strerror}",
                fix=f"max.connections.per.ip.overrides=127.0.0.1:{limit}    (an address)",
                see="bad-value",
                exit_code=EXIT_USAGE,
            ) from None
    return found


def port_holder(port: int) -> tuple[int, str] | None:
    """The process that listens on a port and its command, as far as this user may see it."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    for entry in sorted(os.listdir("/proc")):
        if entry.isdigit() and _holds(entry, inodes):
            return int(entry), _command(entry)
    return None


def _listening_inodes(port: int) -> frozenset[str]:
    """The sockets in /proc/net that listen on the port; none where there is no /proc."""
    inodes: list[str] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        inodes += [
            row[9]
            for row in rows
            if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port
        ]
    return frozenset(inodes)


def _holds(process: str, inodes: frozenset[str]) -> bool:
    try:
        with os.scandir(f"/proc/{process}/fd") as entries:
            for entry in entries:
                match = _SOCKET_LINK.fullmatch(os.readlink(entry.path))
                if match is not None and match[1] in inodes:
                    return True
    except OSError:
        # The process is gone, or another user's.
        return False
    return False


def _command(process: str) -> str:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return "a process"
    return b" ".join(words[:4]).decode(errors="replace").strip()[:80] or "a process"
