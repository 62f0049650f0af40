"""Fixtures for all tests."""

from tests.service_fixtures import caller, redis_url, settings, start_worker

__all__ = ["caller", "redis_url", "settings", "start_worker"]
