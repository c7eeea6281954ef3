"""Native integers as pyright shall see them: int.

mypyc reads mypy's own stub, where they are machine integers.
"""

from typing import TypeAlias

i64: TypeAlias = int
i32: TypeAlias = int
i16: TypeAlias = int
u8: TypeAlias = int
