"""Sockets are opened as the listeners say, or the one who has the port is named."""

import os
import socket

import pytest

from barnabas.model.listeners import Listener
from barnabas.node.listeners import by_address, listen, port_holder
from barnabas.node.output import ProgramError


def test_each_listener_gets_a_socket_and_its_real_port():
    first, second = listen([Listener("A", "127.0.0.1", 0), Listener("B", "127.0.0.1", 0)], 5)
    try:
        assert first[0].name == "A"
        assert first[0].port == first[1].getsockname()[1] != second[0].port
        with socket.create_connection(("127.0.0.1", second[0].port), timeout=5):
            pass
    finally:
        for _, sock in (first, second):
            sock.close()


def test_an_empty_host_is_every_interface():
    [(listener, sock)] = listen([Listener("A", "", 0)], 5)
    with sock, socket.create_connection(("127.0.0.1", listener.port), timeout=5):
        pass


def test_a_taken_port_names_who_has_it_and_leaves_nothing_open():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ProgramError) as refused:
            listen([Listener("A", "127.0.0.1", 0), Listener("B", "127.0.0.1", port)], 5)
        assert f"(process {os.getpid()})" in refused.value.cause
        assert refused.value.fix == f"listeners=B://127.0.0.1:{port + 1 if port < 65535 else 0}"
        assert refused.value.see == "port-taken"


def test_nobody_holds_a_free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert port_holder(port) is None


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(ProgramError) as refused:
        listen([Listener("A", "192.0.2.1", 0)], 5)
    assert refused.value.see == "cannot-listen"
    assert "listeners=A://:0" in refused.value.fix


def test_a_limit_of_a_name_holds_for_its_addresses():
    assert by_address({"localhost": 7, "10.0.0.1": 1})["127.0.0.1"] == 7
    with pytest.raises(ProgramError) as refused:
        by_address({"no-such-host.invalid": 3})
    assert "no-such-host.invalid cannot be resolved" in refused.value.cause
    assert refused.value.exit_code == 2
