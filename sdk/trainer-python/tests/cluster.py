"""A cluster of Ray on this machine, which starts on a busy machine too."""

import os
import socket
import sys
from typing import Any

# Workers would give way to every other program, and a node would give up on a slow start. Ray reads these in each process
# that it starts.
os.environ.update(
    RAY_worker_niceness=str(os.nice(0)), RAY_agent_register_timeout_ms="600000", RAY_USAGE_STATS_ENABLED="0"
)

#: The ports that a node otherwise chooses, and then waits 15 seconds for.
_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
#: How often a node is started anew. Ray waits 30 seconds for one.
_TRIES = 10


def start(cpus: int, store: int) -> Any:
    """Starts a node with so many processors and bytes of store, and returns the cluster."""
    node = {"num_cpus": cpus, "object_store_memory": store, "include_dashboard": False}
    for _ in range(_TRIES - 1):
        try:
            return _start(node)
        except Exception as error:  # Ray has no type for it.
            print(f"Ray did not start: {error}", file=sys.stderr)
    return _start(node)


def _start(node: dict[str, Any]) -> Any:
    from ray.cluster_utils import Cluster

    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in _PORTS]
    ports = {name: each.getsockname()[1] for name, each in zip(_PORTS, sockets)}
    for each in sockets:
        each.close()
    return Cluster(initialize_head=True, head_node_args={**node, **ports})
