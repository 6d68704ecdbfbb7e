"""Can every node call every other? Wait for all of them, then let a task on each call a task on each.

On a cluster:   helio run examples/pairs.py 3     (wait for 3 nodes; without a number: those that are there)
Without one:    python examples/pairs.py
"""

import sys
import time
from collections import Counter

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

DEADLINE = 120  # seconds until a node that is not there counts as missing
EACH = 10  # calls for each pair


def alive() -> dict[str, str]:
    """Node id to node name, for every node that can run a task."""
    return {
        node["NodeID"]: node["Labels"].get("helio-node", node["NodeName"])
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }


def wait_for(wanted: int) -> dict[str, str]:
    """All wanted nodes, or an end that says how many came."""
    until = time.monotonic() + DEADLINE
    while len(nodes := alive()) < wanted:
        if time.monotonic() > until:
            sys.exit(f"after {DEADLINE} s there are {len(nodes)} of {wanted} nodes: {sorted(nodes.values())}")
        print(f"{len(nodes)} of {wanted} nodes are there")
        time.sleep(1)
    return nodes


def here() -> str:
    return ray.get_runtime_context().get_node_id()


@ray.remote
def inner() -> str:
    return here()


@ray.remote
def outer(there: str) -> tuple[str, str]:
    """A task that starts another one, on the node `there`, and waits for it."""
    return here(), ray.get(inner.options(scheduling_strategy=on(there)).remote())


def on(node_id: str) -> NodeAffinitySchedulingStrategy:
    return NodeAffinitySchedulingStrategy(node_id, soft=False)


ray.init(logging_level="WARNING")
nodes = wait_for(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
print(f"{len(nodes)} nodes: {', '.join(sorted(nodes.values()))}")

# Each ordered pair of nodes, EACH times over.
wanted = [(a, b) for a in nodes for b in nodes] * EACH
calls = [outer.options(scheduling_strategy=on(a)).remote(b) for a, b in wanted]
pairs = Counter(ray.get(calls, timeout=DEADLINE))
for (a, b), count in sorted(pairs.items()):
    print(f"  {nodes[a]:<12} called {nodes[b]:<12} {count} times")
if pairs != Counter(wanted):
    sys.exit("some tasks ran elsewhere than they were told to")
print("Success!")
