"""How the files of a certificate are read: by processes that nobody sits before."""

import ssl
from pathlib import Path


class EncryptedKey(OSError):
    """A private key that cannot be read without its pass phrase."""

    def __init__(self) -> None:
        super().__init__("the private key is encrypted, and there is nobody to ask for its pass phrase: decrypt it")


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    """Have the context show the certificate, whose file may hold the key too. Raises OSError.

    OpenSSL would ask for a pass phrase on the terminal, and wait; and of a file that is not there, or may not be read,
    it does not say which of the two it is.
    """
    for path in filter(None, (certificate, key)):
        path.open("rb").close()
    context.load_cert_chain(certificate, key, _pass_phrase)


def _pass_phrase() -> str:
    raise EncryptedKey
