"""Ids that are drawn: which bits are chance, and what is drawn again."""

from barnabas.core.administration.topic_ids import new_uuid


class Given:
    """Chance that is known beforehand."""

    def __init__(self, *drawn: bytes) -> None:
        self._drawn = list(drawn)

    def randbytes(self, count: int) -> bytes:
        drawn = self._drawn.pop(0)
        assert len(drawn) == count
        return drawn


def test_all_bits_but_those_of_version_and_variant_are_chance():
    none, every = bytes(16), b"\x7f" + b"\xff" * 15
    assert new_uuid(Given(none)) == bytes.fromhex("00000000000040008000000000000000")
    assert new_uuid(Given(every)) == bytes.fromhex("7fffffffffff4fffbfffffffffffffff")
    counted = bytes(range(1, 17))
    assert new_uuid(Given(counted)) == bytes.fromhex("0102030405064708890a0b0c0d0e0f10")


def test_an_id_whose_text_would_begin_with_a_dash_is_drawn_again():
    assert new_uuid(Given(b"\xf8" + bytes(15), bytes(16))) == new_uuid(Given(bytes(16)))
