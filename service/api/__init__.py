"""The REST API: one router per resource. Knows neither Redis commands nor solvers."""
