"""What a codec refuses: values that a version cannot carry."""

from barnabas.model.invariant import InvariantViolated


class Unencodable(InvariantViolated):
    """A value that has no place in the version it was to be encoded for: a bug of the caller."""
