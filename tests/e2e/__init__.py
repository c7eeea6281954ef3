"""Tests of the real program: processes, sockets, and clients that were not made for it."""
