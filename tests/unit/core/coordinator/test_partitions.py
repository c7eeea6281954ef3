"""Which partition a group belongs to: Java's hash of its name."""

import pytest

from barnabas.core.coordinator.partitions import coordinator_partition, java_string_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        # Outside the first plane: two UTF-16 units, not one character.
        ("\U0001f600", 0xD83D * 31 + 0xDE00),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_the_hash_is_that_of_java(text: str, expected: int):
    assert java_string_hash(text) == expected


def test_the_one_hash_without_an_absolute_value_belongs_to_the_first_partition():
    assert coordinator_partition("polygenelubricants", 50) == 0
    assert coordinator_partition("hello", 50) == 99162322 % 50
