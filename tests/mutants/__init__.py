"""Mistakes that somebody could make in the service, each put into a copy of the sources: do the tests notice?"""
