"""What is each node's GPU? A node that has none says so; so does one that claims a GPU which does not answer.

On a cluster:   helio run examples/gpu.py
Without one:    python examples/gpu.py
"""

import shutil
import subprocess

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

# Whoever makes the card has a program that names it.
PROGRAMS = (["nvidia-smi", "-L"], ["rocm-smi", "--showproductname", "--csv"])


def look() -> list[str]:
    """One line for each card that its own driver can see on this node."""
    for program in PROGRAMS:
        if shutil.which(program[0]):
            answer = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)
            if answer.returncode == 0:
                return [line for line in answer.stdout.splitlines() if line.strip()]
    return []


ray.init(logging_level="WARNING")
nodes = [node for node in ray.nodes() if node["Alive"]]
for node in nodes:
    name = node["Labels"].get("helio-node", node["NodeName"])
    wanted = node["Resources"].get("GPU", 0)
    if not wanted:
        print(f"{name}: no GPU")
        continue
    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    task = ray.remote(look).options(num_cpus=0, num_gpus=wanted, scheduling_strategy=there)
    cards = ray.get(task.remote(), timeout=120)
    print(f"{name}: {wanted:g} GPU")
    for card in cards or ["Ray was told of a GPU, but no driver here can see one"]:
        print(f"  {card}")
