"""The operations are tested in a whole consumer in one thread, as the flows are."""

from tests.flows.conftest import client, disk, files, judged

__all__ = ["client", "disk", "files", "judged"]
