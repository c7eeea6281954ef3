"""The wire client: what programs ask of a cluster, without sockets, clock or chance of its own.

An operation is a generator: it yields what it wants done (`steps.Ask`, `steps.Pause`) and is sent
what came of it. Whoever drives it owns sockets and clock: `node.blocking_client` for programs, a
few lines in a test.
"""
