"""The shape of job lists."""

from pydantic import BaseModel

from service.queue.models import JobInfo


class JobList(BaseModel):
    jobs: list[JobInfo]
