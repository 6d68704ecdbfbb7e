"""A hundred small tasks: which nodes are there, and which of them did the work?

On a cluster:   helio run examples/hello.py
Without one:    python examples/hello.py     (Ray then starts on this machine, for this script alone)
"""

import time
from collections import Counter

import ray

TASKS = 100
SECONDS = 0.1


@ray.remote(scheduling_strategy="SPREAD")
def work() -> str:
    """Pretend to work, and tell on which node."""
    time.sleep(SECONDS)
    return ray.get_runtime_context().get_node_id()


ray.init(logging_level="WARNING")
# helio writes each node's name into the label "helio-node"; elsewhere the host's name has to do.
names = {
    node["NodeID"]: node["Labels"].get("helio-node", node["NodeName"])
    for node in ray.nodes()
    if node["Alive"]
}
cpus = ray.cluster_resources().get("CPU", 0)
print(f"Nodes: {len(names)}, CPUs: {cpus:.0f}")

began = time.perf_counter()
tasks_of = Counter(ray.get([work.remote() for _ in range(TASKS)]))
took = time.perf_counter() - began

print(f"{TASKS} tasks of {SECONDS} s took {took:.1f} s (one after another: {TASKS * SECONDS:.0f} s)")
for node_id, count in sorted(tasks_of.items(), key=lambda item: names.get(item[0], item[0])):
    print(f"  {names.get(node_id, node_id):<12} {count:>3} tasks")
