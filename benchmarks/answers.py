"""A benchmark of wrong answers is worth nothing: what every run is held to."""

from gpu_engine.checks.certificate import Certificate


class WrongAnswer(Exception):
    """A solver, an engine or the service said something that is not so."""


def check(holds: bool, said: object) -> None:
    """Raise `WrongAnswer` with what was said unless it holds."""
    if not holds:
        raise WrongAnswer(str(said))


def check_certificate(certificate: Certificate, value: int) -> None:
    """The certificate must be valid and prove this value."""
    check(certificate.valid and certificate.value == value, f"{certificate} for the value {value}")
