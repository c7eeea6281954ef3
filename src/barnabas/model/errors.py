"""Operating errors, named by what happened.

BarnabasError
|- DecodeError           bytes from outside that are not what they claim to be
|- CorruptBatch          a record batch whose checksum or shape is wrong
|  `- DecompressedTooLarge  more comes out of a compressed one than may
|- DiskError             the disk refused an operation
|  |- DiskFull           no space, or a quota
|  |- FileMissing        the path does not exist
|  |- TooManyOpenFiles   no more files can be opened before another one is closed
|  `- DiskLost           any other refusal: the log directory cannot be trusted any more
|- LogDirectoryRefused   a directory that is not ours to use: what was found, what was expected
|  `- LogDirectoryInUse  another process works on it
|- MetadataFileRefused   a metadata file that is not ours to use, or damaged
|  `- MetadataFileInUse  another process has it open
|- RegistrationRefused   another broker has this one's id or address, or the store has no say
`- ConfigRefused         a setting that cannot be honoured, with key, value and reason
   `- SettingUnsupported one that Kafka would honour and this broker must not pass over

Answers to clients are `ErrorCode` values, never exceptions; bugs are `InvariantViolated`.
"""


class BarnabasError(Exception):
    """Anything the world did to us; mapped to an answer or a message at a package's edge."""


class DecodeError(BarnabasError):
    """Bytes from outside that are not what they claim to be."""


class CorruptBatch(BarnabasError):
    """A record batch whose checksum or shape is wrong."""


class DecompressedTooLarge(CorruptBatch):
    """More comes out of a compressed batch than it may hold."""


class DiskError(BarnabasError):
    """The disk refused an operation; `path` says on what."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class DiskFull(DiskError):
    """No space is left, or a quota is used up."""


class FileMissing(DiskError):
    """The path does not exist."""


class TooManyOpenFiles(DiskError):
    """No more files can be opened before another one is closed."""


class DiskLost(DiskError):
    """The log directory cannot be trusted any more; never retried."""


class LogDirectoryRefused(BarnabasError):
    """A directory that is not ours to use; nothing in it was changed."""


class LogDirectoryInUse(LogDirectoryRefused):
    """Another process works on the directory; the text says which."""


class MetadataFileRefused(BarnabasError):
    """A metadata file that cannot be trusted or shared: what was found, what was expected."""


class MetadataFileInUse(MetadataFileRefused):
    """Another process has the metadata file; the text says which."""


class RegistrationRefused(BarnabasError):
    """This broker cannot be a member of the cluster; nothing of another member was changed."""


class ConfigRefused(BarnabasError):
    """A setting that cannot be honoured."""

    def __init__(self, key: str, value: str, reason: str, fix: str = "") -> None:
        super().__init__(f"{key}={value}: {reason}")
        self.key = key
        self.value = value
        self.reason = reason
        self.fix = fix
        """What to write instead, where the rule that refuses knows better than the default."""


class SettingUnsupported(ConfigRefused):
    """A setting that Kafka would honour and this broker must not pass over in silence."""
