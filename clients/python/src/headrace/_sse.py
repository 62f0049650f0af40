"""A reader for server-sent events, fed line by line; no I/O."""

from dataclasses import dataclass, field

from headrace._amounts import loads
from headrace._records import JobEvent


@dataclass(slots=True)
class EventReader:
    """Collects the fields of one event (WHATWG HTML, section 9.2.6) and gives it at the blank line."""

    last_id: str | None = None
    _name: str = "message"
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> JobEvent | None:
        """Take one line without its end; the event it completes, if any."""
        if line:
            self._field(*_split(line))
            return None
        name, data = self._name, self._data
        self._name, self._data = "message", []
        return JobEvent(self.last_id, name, loads("\n".join(data))) if data else None

    def _field(self, name: str, value: str) -> None:
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self.last_id = value


def _split(line: str) -> tuple[str, str]:
    """Field and value; a line that starts with a colon is a comment, a field without a name."""
    name, _, value = line.partition(":")
    return name, value.removeprefix(" ")
