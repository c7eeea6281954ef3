"""The text of the classes: one per message and struct, the union of all versions' fields."""

from barnabas.formats.codec.schema import ZERO, Array, Field, Kind, Scalar, Struct
from codec_generator.layout import snake_case

NATIVE_TYPES = {
    Kind.BOOL: "bool",
    Kind.INT8: "i16",
    Kind.INT16: "i16",
    Kind.INT32: "i32",
    Kind.INT64: "i64",
    Kind.UUID: "bytes",
    Kind.STRING: "str",
    Kind.BYTES: "bytes",
    Kind.RECORDS: "Records",
}
ZEROS = {
    Kind.BOOL: "False",
    Kind.UUID: "ZERO_UUID",
    Kind.STRING: '""',
    Kind.BYTES: 'b""',
    Kind.RECORDS: "None",
}


def default_constant(struct: Struct) -> str:
    """The name of the one default of a struct that is an immutable tuple."""
    return f"NO_{snake_case(struct.name).upper()}"


def is_nullable(field: Field) -> bool:
    """Whether the value may be None in any version."""
    is_records = isinstance(field.type, Scalar) and field.type.kind is Kind.RECORDS
    return field.nullable != "none" or is_records


def element_type(element: Scalar | Struct) -> str:
    """The type of a list's elements: numbers in lists are objects, so native types gain nothing."""
    if isinstance(element, Struct):
        return element.name
    if element.meaning:
        return element.meaning
    native = NATIVE_TYPES[element.kind]
    return "int" if native in ("i16", "i32", "i64") else native


def field_type(field: Field, *, native: bool = True) -> str:
    """The annotation of a field."""
    if isinstance(field.type, Array):
        text = f"list[{element_type(field.type.element)}]"
    elif isinstance(field.type, Struct):
        text = field.type.name
    elif field.type.meaning or not native:
        text = element_type(field.type)
    else:
        text = NATIVE_TYPES[field.type.kind]
    return f"{text} | None" if is_nullable(field) else text


def default_text(field: Field) -> str:
    """The value that stands for a field's absence, as an expression."""
    if field.default is not ZERO:
        return repr(field.default)
    if isinstance(field.type, Array):
        return "EMPTY"
    if isinstance(field.type, Struct):
        return default_constant(field.type)
    return ZEROS.get(field.type.kind, "0")


def is_set_test(field: Field, owner: str = "value") -> str:
    """A condition that holds when a field of `owner` is not its default."""
    name = f"{owner}.{field.name}"
    if field.default is None or default_text(field) == "None":
        return f"{name} is not None"
    if isinstance(field.type, Array):
        if is_nullable(field):
            return f"{name} is None or len({name}) > 0"
        return f"len({name}) > 0"
    if isinstance(field.type, Struct):
        default = default_text(field)
        return f"{name} is not {default} and {name} != {default}"
    if isinstance(field.type, Scalar) and field.type.kind is Kind.BOOL:
        return f"not {name}" if field.default is True else name
    return f"{name} != {default_text(field)}"


def value_struct_text(struct: Struct) -> str:
    """A struct that is the type of a field: an immutable tuple with one shared default."""
    lines = [f"class {struct.name}(NamedTuple):"]
    for field in struct.fields:
        if not isinstance(field.type, Scalar):
            raise ValueError(f"{struct.name}.{field.name} cannot be part of a tuple")
        annotation = field_type(field, native=False)
        lines.append(f"    {field.name}: {annotation} = {default_text(field)}")
    lines += ["", "", f"{default_constant(struct)}: Final = {struct.name}()", "", "", ""]
    return "\n".join(lines)


def class_text(struct: Struct) -> str:
    """A message, or a struct that is an element of arrays."""
    names = [field.name for field in struct.fields]
    lines = [f"class {struct.name}:"]
    slots = ", ".join(f'"{name}"' for name in sorted(names))
    lines += [f"    __slots__ = ({slots}{',' if len(names) == 1 else ''})", ""]
    if names:
        lines += ["    def __init__(", "        self,", "        *,"]
        lines += [f"        {f.name}: {field_type(f)} = {default_text(f)}," for f in struct.fields]
        lines += ["    ) -> None:"]
        lines += [f"        {_assignment(field)}" for field in struct.fields]
        lines += [""]
    lines += [
        "    def __eq__(self, other: object) -> bool:",
        f"        if not isinstance(other, {struct.name}):",
        "            return NotImplemented",
    ]
    if names:
        lines += ["        return ("]
        for index, name in enumerate(names):
            lines += [f"            {'and ' if index else ''}self.{name} == other.{name}"]
        lines += ["        )"]
    else:
        lines += ["        return True"]
    lines += [
        "",
        "    def __repr__(self) -> str:",
        "        return (",
        f'            "{struct.name}("',
    ]
    for index, name in enumerate(names):
        comma = ", " if index < len(names) - 1 else ""
        lines += [f'            f"{name}={{self.{name}!r}}{comma}"']
    lines += ['            ")"', "        )", "", "", ""]
    return "\n".join(lines)


def _assignment(field: Field) -> str:
    if default_text(field) != "EMPTY":
        return f"self.{field.name} = {field.name}"
    annotation = field_type(field)
    return f"self.{field.name}: {annotation} = [] if {field.name} is EMPTY else {field.name}"
