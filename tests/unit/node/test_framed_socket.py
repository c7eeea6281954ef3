"""What one framed socket does when its peer takes an answer slowly."""

import socket

from barnabas.node.framed_socket import FramedSocket, TransferBuffers


class Owner:
    """Takes nothing; remembers why the socket ended."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def on_frame(self, data: bytes, start: int, end: int) -> None:
        raise AssertionError("nothing was sent to it")

    def on_refused(self, reason: str) -> None:
        raise AssertionError(reason)

    def on_end(self, reason: str) -> None:
        self.ends.append(reason)


def test_a_peer_that_takes_its_answer_slowly_is_not_idle() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    with theirs:
        framed = FramedSocket(ours, Owner(), 1000, TransferBuffers(), "some.limit")
        framed.queue([bytes(30_000_000)])
        left = -1
        while left != framed.out_bytes:
            left = framed.out_bytes
            assert not framed.flush(1_000)
        assert framed.last_active_ms == 1_000
        while framed.out_bytes == left:
            theirs.recv(65536)
            assert not framed.flush(3_000)
        assert framed.last_active_ms == 3_000
        framed.end("done")
