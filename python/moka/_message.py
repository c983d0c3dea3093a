# SPDX-License-Identifier: Apache-2.0
"""Messages of Core ML's specification as Python objects."""

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import _moka

_ZERO = {"integer": 0, "number": 0.0, "boolean": False, "text": "", "bytes": b""}


class _Field:
    """The type of a field of a message."""

    def __init__(self, name: str, type: str, repeated: bool, is_message: bool, is_map: bool, zero: str) -> None:
        self.name, self.type, self.repeated = name, type, repeated
        self.is_message, self.is_map, self.zero = is_message, is_map, zero


_fields: Dict[str, Dict[str, _Field]] = {}


def _fields_of(handle: "_moka.build.Message") -> Dict[str, _Field]:
    found = _fields.get(handle.type)
    if found is None:
        found = _fields[handle.type] = {f[0]: _Field(*f) for f in handle.fields()}
    return found


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "__array__") and not np.isscalar(value) and not isinstance(value, np.generic))


class Message:
    """A message of the specification: ``Message("NeuralNetworkLayer", name="dense", input=["x"], output=["y"])``.

    Fields are attributes. A field that is a message takes a Message or a dict, a map takes a dict, and a list takes any sequence; lists of
    numbers also take arrays, to which the message refers without a copy if their type fits. Reading a message that is absent gives an empty
    one, which is added when something in it is set. Fields that Moka does not know are kept. Raises InvalidArgumentError for unknown fields
    and values that do not fit. copy.copy copies a message.
    """

    __slots__ = ("_handle", "_parent", "_field", "_type")

    _handle: Optional["_moka.build.Message"]
    _parent: Optional["Message"]
    _field: str
    _type: str

    def __init__(self, type: str, /, **fields: Any) -> None:
        self._attach(_moka.build.Message(type), None, "")
        self.update(**fields)

    def _attach(self, handle: Optional["_moka.build.Message"], parent: Optional["Message"], field: str, type: str = "") -> None:
        object.__setattr__(self, "_handle", handle)
        object.__setattr__(self, "_parent", parent)
        object.__setattr__(self, "_field", field)
        object.__setattr__(self, "_type", handle.type if handle is not None else type)

    @classmethod
    def _of(cls, handle: Optional["_moka.build.Message"], parent: Optional["Message"] = None, field: str = "", type: str = "") -> "Message":
        out = cls.__new__(cls)
        out._attach(handle, parent, field, type)
        return out

    @classmethod
    def parse(cls, type: str, data: bytes) -> "Message":
        """Decodes the bytes of a message. Raises MalformedModelError."""
        return cls._of(_moka.build.Message.parse(type, bytes(data)))

    def _read(self) -> "_moka.build.Message":
        """The message, or an empty one."""
        if self._handle is not None:
            return self._handle
        assert self._parent is not None
        parent = self._parent._read()
        if parent.size(self._field) == 0:
            return _moka.build.Message(self._type)
        handle = parent.at(self._field, 0)
        object.__setattr__(self, "_handle", handle)
        return handle

    def _own(self) -> "_moka.build.Message":
        """The message, added to its parent if it is absent."""
        if self._handle is not None:
            return self._handle
        assert self._parent is not None
        handle = self._parent._own().add(self._field)
        object.__setattr__(self, "_handle", handle)
        return handle

    def _field_of(self, name: str) -> _Field:
        handle = self._read()
        fields = _fields_of(handle)
        if name not in fields:
            handle.size(name)  # raises
        return fields[name]

    @property
    def type_name(self) -> str:
        """The name of the message's type."""
        return self._type

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            field = self._field_of(name)
        except _moka.InvalidArgumentError as e:
            raise AttributeError(str(e)) from None
        handle = self._read()
        if field.is_map:
            return {entry.key: entry.value for entry in Messages(self, field)}
        if field.is_message:
            return Messages(self, field) if field.repeated else Message._of(None, self, name, field.type)
        if field.repeated:
            return handle.array(name) if field.type == "number" else handle.values(name)
        values = handle.values(name)
        return values[0] if values else _ZERO.get(field.type, field.zero)

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._field_of(name)
        if value is None:
            self._own().clear(name)
        elif field.is_map:
            self._own().clear(name)
            for key, item in value.items():
                Message._of(self._own().add(name)).update(key=key, value=item)
        elif field.is_message and field.repeated:
            made = [_made(field.type, item) for item in value]
            self._own().clear(name)
            for item in made:
                self._own().set_message(name, item._read())
        elif field.is_message:
            self._own().set_message(name, _made(field.type, value)._read())
        elif (field.repeated or field.type == "bytes") and _is_array(value):
            self._own().set_array(name, np.ascontiguousarray(value))
        elif field.repeated:
            if isinstance(value, (str, bytes)):
                raise TypeError(f"field '{name}' of {self._type}: expected a list, got {type(value).__name__}")
            self._own().set_list(name, list(value))
        else:
            self._own().set(name, value)

    def update(self, **fields: Any) -> "Message":
        """Sets several fields. Returns the message."""
        for name, value in fields.items():
            setattr(self, name, value)
        return self

    def has(self, name: str) -> bool:
        """Whether a field has a value."""
        return self._read().size(name) > 0

    def which(self, oneof: str) -> Optional[str]:
        """The field of a oneof that has a value: which("Type") of a Model."""
        return self._read().which(oneof) or None

    def clear(self, name: str) -> None:
        self._own().clear(name)

    def fields(self) -> List[str]:
        """The names of the fields that have a value."""
        return self._read().names()

    def serialize(self) -> bytes:
        return self._read().serialize()

    def __copy__(self) -> "Message":
        return Message._of(self._read().copy())

    def __deepcopy__(self, memo: Any) -> "Message":
        return self.__copy__()

    def __bytes__(self) -> bytes:
        return self.serialize()

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *_fields_of(self._read())]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Message) and self._type == other._type and self.serialize() == other.serialize()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "\n".join([f"{self._type}:", *_lines(self, "  ")])


def _made(type: str, value: Any) -> Message:
    """A message of a type from a message or a dict."""
    if isinstance(value, Message):
        return value
    if isinstance(value, Mapping):
        return Message(type, **value)
    raise TypeError(f"expected a {type} or a dict of its fields, got {value.__class__.__name__}")


class Messages(Sequence[Message]):
    """The messages of a repeated field."""

    def __init__(self, parent: Message, field: _Field) -> None:
        self._parent = parent
        self._field = field

    def __len__(self) -> int:
        return self._parent._read().size(self._field.name)

    def __getitem__(self, index: Union[int, slice]) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"field '{self._field.name}': expected an index below {len(self)}, got {index}")
        return self._at(at)

    def _at(self, index: int) -> Message:
        return Message._of(self._parent._read().at(self._field.name, index))

    def __iter__(self) -> Iterator[Message]:
        return iter([Message._of(handle) for handle in self._parent._read().all(self._field.name)])

    def __delitem__(self, index: int) -> None:
        self._parent._own().remove(self._field.name, index + len(self) if index < 0 else index)

    def add(self, **fields: Any) -> Message:
        """Appends a message with these fields and returns it."""
        self.append(Message(self._field.type, **fields))
        return self._at(len(self) - 1)

    def append(self, value: Union[Message, Mapping[str, Any]]) -> None:
        self._parent._own().set_message(self._field.name, _made(self._field.type, value)._read())

    def extend(self, values: Any) -> None:
        for value in values:
            self.append(value)

    def __repr__(self) -> str:
        return f"[{len(self)} x {self._field.type}]"


def _lines(message: Message, indent: str) -> Iterator[str]:
    most = 8
    for name in message.fields():
        field, value = message._field_of(name), getattr(message, name)
        if field.is_map or not field.is_message:
            text = f"{len(value)} values" if isinstance(value, np.ndarray) and value.size > most else repr(value)
            yield f"{indent}{name}: {text if len(text) < 100 else text[:97] + '...'}"
            continue
        items = list(value) if field.repeated else [value]
        for item in items[:most]:
            yield f"{indent}{name}:"
            yield from _lines(item, indent + "  ")
        if len(items) > most:
            yield f"{indent}... {len(items) - most} more"
