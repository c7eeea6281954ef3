"""New ids for topics and clusters, drawn from the chance that was handed in."""

import random

from barnabas.formats.znodes.uuids import uuid_text


def new_uuid(source: random.Random) -> bytes:
    """A random UUID (version 4); its text does not begin with a dash, which tools take amiss."""
    while True:
        drawn = bytearray(source.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        uuid = bytes(drawn)
        if not uuid_text(uuid).startswith("-"):
            return uuid
