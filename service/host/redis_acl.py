"""What the application may do in Redis: one user, one line, given to the embedded server and to be copied to others.

Data commands only: no scripts, no configuration, no FLUSHALL, KEYS, DEBUG, SHUTDOWN, MIGRATE or user management.
INFO and CONFIG GET are for `/status`; without them it says "unknown". INFO and BGREWRITEAOF are for what
`service.store.durable` does, too.
"""

from typing import Final

from service.settings import REDIS_USER

COMMANDS: Final = (
    *("+@read", "+@write", "+@stream", "+@transaction", "+@connection"),
    *("-@dangerous", "-@admin", "-@scripting", "-@pubsub"),
    *("+info", "+config|get", "+bgrewriteaof"),
)


def acl(prefix: str, password: str | None) -> list[str]:
    """The words of the line ``user headrace ...``, for keys that begin with `prefix`."""
    return [REDIS_USER, "on", "nopass" if password is None else f">{password}", f"~{prefix}*", "-@all", *COMMANDS]
