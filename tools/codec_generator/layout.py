"""What a struct looks like in one version, and which versions look the same.

Two versions share a function when every byte they write, every check they make and every
function they call are the same; the function carries the number of the first of them.
"""

import re
from dataclasses import dataclass

from barnabas.formats.codec.schema import Api, Array, Field, Kind, Scalar, Struct

FIXED_SIZES = {
    Kind.BOOL: 1,
    Kind.INT8: 1,
    Kind.INT16: 2,
    Kind.INT32: 4,
    Kind.INT64: 8,
    Kind.UUID: 16,
}


def snake_case(name: str) -> str:
    """FetchPartition -> fetch_partition; isKRaftController -> is_k_raft_controller."""
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).lower()


def version_text(versions: list[int]) -> str:
    """[0, 1, 2, 5] -> "0-2, 5"."""
    ranges: list[list[int]] = []
    for version in versions:
        if ranges and ranges[-1][1] == version - 1:
            ranges[-1][1] = version
        else:
            ranges.append([version, version])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def fixed_size(field: Field) -> int | None:
    """The width of a field that has one."""
    if isinstance(field.type, Scalar):
        return FIXED_SIZES.get(field.type.kind)
    return None


def present_fields(struct: Struct, version: int) -> list[Field]:
    """The fields of a version in the order of the wire, without the tagged ones."""
    return [field for field in struct.fields if field.is_in(version) and field.tag is None]


def tagged_fields(struct: Struct, version: int) -> list[Field]:
    """The tagged fields of a version by tag."""
    tagged = [(f.tag, f) for f in struct.fields if f.is_in(version) and f.tag is not None]
    return [field for _, field in sorted(tagged, key=lambda pair: pair[0])]


def absent_fields(struct: Struct, version: int) -> list[Field]:
    """The fields without a place in a version that may not be dropped silently."""
    return [field for field in struct.fields if not field.is_in(version) and not field.ignorable]


def size_min(struct: Struct, version: int, flexible: bool) -> int:
    """The fewest bytes that a value of the struct takes in a version."""
    size = 1 if flexible else 0
    for field in present_fields(struct, version):
        if isinstance(field.type, Struct):
            size += size_min(field.type, version, flexible)
        elif (width := fixed_size(field)) is not None:
            size += width
        elif flexible:
            size += 1
        else:
            is_string = isinstance(field.type, Scalar) and field.type.kind is Kind.STRING
            size += 2 if is_string else 4
    return size


def element_size_min(element: Scalar | Struct, version: int, flexible: bool) -> int:
    """The fewest bytes that one element of an array takes; never none, or a count were free."""
    if isinstance(element, Struct):
        size = size_min(element, version, flexible)
    elif element.kind in FIXED_SIZES:
        size = FIXED_SIZES[element.kind]
    else:
        size = 1 if flexible else 2
    if size == 0:
        raise ValueError(f"an element of {element} takes no bytes in version {version}")
    return size


def element_struct(field: Field) -> Struct | None:
    """The struct that a field is, or is an array of."""
    kind = field.type.element if isinstance(field.type, Array) else field.type
    return kind if isinstance(kind, Struct) else None


@dataclass(frozen=True)
class Shape:
    """All that decides about the text of a struct's encoder and decoder in one version."""

    encoded: str
    decoded: str


class ApiLayout:
    """The structs of one API, children first, and the shape of each in each version."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.versions = list(api.version_range)
        self.structs: list[Struct] = []
        self._shapes: dict[tuple[str, int], Shape] = {}
        for message in (api.request, api.response):
            self._collect(message)

    def _collect(self, struct: Struct) -> None:
        for field in struct.fields:
            child = element_struct(field)
            if child is not None:
                self._collect(child)
        if any(known is struct for known in self.structs):
            return
        if any(known.name == struct.name for known in self.structs):
            raise ValueError(f"{self.api.name}: two structs are called {struct.name}")
        self.structs.append(struct)

    def value_structs(self) -> set[str]:
        """The names of structs that are the type of a field itself."""
        return {f.type.name for s in self.structs for f in s.fields if isinstance(f.type, Struct)}

    def value_meanings(self) -> set[str]:
        """The types of barnabas.model that fields of those structs are read as."""
        values = [struct for struct in self.structs if struct.name in self.value_structs()]
        types = [f.type for s in values for f in s.fields]
        return {t.meaning for t in types if isinstance(t, Scalar) and t.meaning is not None}

    def versions_of(self, struct: Struct) -> list[int]:
        """The versions in which the struct can be on the wire."""
        if struct in (self.api.request, self.api.response):
            return self.versions
        found: set[int] = set()
        for parent in self.structs:
            for field in parent.fields:
                if element_struct(field) is struct:
                    found.update(v for v in self.versions_of(parent) if field.is_in(v))
        return sorted(found)

    def shape(self, struct: Struct, version: int) -> Shape:
        """The shape of a struct in a version; equal shapes share their functions."""
        key = (struct.name, version)
        if key not in self._shapes:
            self._shapes[key] = self._make_shape(struct, version)
        return self._shapes[key]

    def _make_shape(self, struct: Struct, version: int) -> Shape:
        flexible = self.api.is_flexible_in(version)
        fields = [*present_fields(struct, version), *tagged_fields(struct, version)]
        encoded = [f"flexible={flexible}"]
        decoded = [f"flexible={flexible}"]
        for field in fields:
            own = f"{field.name} nullable={field.is_nullable_in(version)} tag={field.tag}"
            child = element_struct(field)
            size = ""
            if isinstance(field.type, Array):
                size = str(element_size_min(field.type.element, version, flexible))
            child_shape = self.shape(child, version) if child else Shape("", "")
            encoded.append(f"{own} ({child_shape.encoded})")
            decoded.append(f"{own} {size} ({child_shape.decoded})")
        encoded += [f"without {field.name}" for field in absent_fields(struct, version)]
        return Shape(" ".join(encoded), " ".join(decoded))

    def encoder_groups(self, struct: Struct) -> list[list[int]]:
        """Versions that share one encoder, in the order of their first."""
        return self._groups(struct, lambda shape: shape.encoded)

    def decoder_groups(self, struct: Struct) -> list[list[int]]:
        """Versions that share one decoder, in the order of their first."""
        return self._groups(struct, lambda shape: shape.decoded)

    def _groups(self, struct, part) -> list[list[int]]:
        groups: dict[str, list[int]] = {}
        for version in self.versions_of(struct):
            groups.setdefault(part(self.shape(struct, version)), []).append(version)
        return list(groups.values())

    def first_version(self, groups: list[list[int]], version: int) -> int:
        """The version whose number the shared function of `version` carries."""
        return next(group[0] for group in groups if version in group)
