"""``python -m service.cli``: what the `headrace` command runs, where no such command is installed."""

from service.cli.main import app

app()
