"""The Python API: a sync facade over the engine, also inside a notebook's running loop."""

from heliostat.api.facade import Cluster, cluster

__all__ = ["Cluster", "cluster"]
