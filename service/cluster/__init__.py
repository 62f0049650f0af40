"""Workers on the machines of a Ray cluster (the extra `ray`): Ray places them, starts them again, and moves them.

Commands go over Redis, as to every worker: a worker in a Ray actor is the one of `python -m service.worker`.
"""
