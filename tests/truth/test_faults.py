"""Something dies on a real cluster: what is said, what comes back, what is touched, within what time."""

from __future__ import annotations

import os
import signal

import pytest

from tests.truth.patient import Patient

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NOTICED = 7.0  # seconds until a lost worker is called lost
GCS_BACK = 8.0
COUNTER = """
import sys, ray
ray.init(namespace="faults", log_to_driver=False, logging_level="error")

@ray.remote(num_cpus=0)
class Counter:
    count = 0
    def add(self):
        self.count += 1
        return self.count

for name, restarts in (("head-0", 0), ("head-1", 1), ("worker-0", 0), ("worker-1", 1)):
    place = "at_" + name[:-2]
    if sys.argv[1] == "make":
        Counter.options(
            name=name, lifetime="detached", resources={place: 1}, max_restarts=restarts, get_if_exists=True
        ).remote()
    try:
        print(name, ray.get(ray.get_actor(name).add.remote(), timeout=30), flush=True)
    except ValueError:
        print(name, "gone", flush=True)
    if sys.argv[1] == "end":
        try:
            ray.kill(ray.get_actor(name))
        except ValueError:
            pass
"""
TICKS = "import time\nfor n in range({n}): print('tick', n, flush=True); time.sleep(0.2)"


def counters(patient: Patient, verb: str) -> dict[str, str]:
    """What the detached actors count by now."""
    patient.script("counter.py", COUNTER)
    lines = patient.mine.run("run", "--", "python", "counter.py", verb).splitlines()
    return dict(line.split() for line in lines if line.startswith(("head-", "worker-")))


@pytest.mark.parametrize("node", ["worker-1", "head"])
def test_a_node_program_killed(patient: Patient, node: str) -> None:
    """Nobody watches over that node any more: that is said, and mended with nothing of Ray touched."""
    job = patient.submit("--", "python", "-c", TICKS.format(n=100))
    patient.prints(job, "tick 1")
    before = patient.daemons("head", "worker-1", "worker-2")
    dead = patient.kill(node, "")
    (trouble,) = patient.status()["trouble"]
    assert f"{node}: its node program is gone" in trouble
    patient.heal()
    assert patient.status()["trouble"] == []
    after = patient.daemons("head", "worker-1", "worker-2")
    assert {pid for pid, _ in before - after} == {dead}
    assert patient.job(job)["state"] == "running"
    old = patient.ray_ids()[node]
    patient.kill("worker-1", "raylet")  # and what dies there is brought back again
    patient.until(lambda: patient.all_alive() and patient.ray_ids()["worker-1"] != old, "the worker", 40)


def test_a_node_program_killed_while_its_node_comes_back(patient: Patient) -> None:
    """Ray lists the node a moment before its start command ends: what was started is whole all the same."""
    program, old = patient.mine.pids("worker-1")[""], patient.ray_ids()["worker-1"]
    others, rest = patient.daemons("head", "worker-2"), patient.rest
    dead = rest.nodes()["DEAD"]
    patient.kill("worker-1", "raylet")
    patient.until(lambda: rest.nodes() == {"ALIVE": 3, "DEAD": dead + 1}, "the node to be back", 40)
    os.kill(program, signal.SIGKILL)
    said = "worker-1: its node program is gone: nobody"
    patient.until(lambda: any(said in one for one in patient.status()["trouble"]), "`status` to say so", 20)
    new = patient.ray_ids()["worker-1"]
    patient.heal()
    assert patient.ray_ids()["worker-1"] == new != old
    assert patient.daemons("head", "worker-2") == others


def test_gcs_killed(patient: Patient) -> None:
    """It is back by itself; workers, detached actors and a running job never notice."""
    assert set(counters(patient, "make").values()) == {"1"}
    job = patient.submit("--", "python", "-c", TICKS.format(n=60))
    patient.prints(job, "tick 1")
    ids, rest = patient.ray_ids(), patient.rest
    workers = patient.daemons("worker-1", "worker-2")
    old = patient.kill("head", "gcs_server")

    def back() -> bool:
        return rest.nodes()["ALIVE"] == 3 and rest.works()

    patient.within(GCS_BACK, back, "GCS to be back")
    assert patient.mine.pids("head")["gcs_server"] != old
    assert patient.ray_ids() == ids
    assert patient.daemons("worker-1", "worker-2") == workers
    assert set(counters(patient, "end").values()) == {"2"}
    patient.mine.run("logs", "-f", job)
    assert patient.job(job)["state"] == "succeeded"


def test_a_worker_that_hangs(patient: Patient) -> None:
    """No process is gone, it only answers nobody: Ray's own list tells, and so do we."""
    before = patient.ray_ids()["worker-1"]
    pid = patient.kill("worker-1", "raylet", signal.SIGSTOP)
    patient.within(NOTICED, lambda: patient.states()["worker-1"] == "dead", "the lost worker to be noticed")
    others = patient.daemons("head", "worker-2")
    patient.heal()
    assert patient.all_alive()
    assert patient.ray_ids()["worker-1"] != before
    assert pid not in patient.processes("worker-1")
    assert patient.daemons("head", "worker-2") == others


def test_a_worker_lost_whole(patient: Patient) -> None:
    others = patient.daemons("head", "worker-2")
    rest = patient.rest
    dead = rest.nodes()["DEAD"]
    patient.kill_all("worker-1")
    patient.within(NOTICED, lambda: patient.states()["worker-1"] == "dead", "`status` to say so")
    patient.within(NOTICED, lambda: rest.nodes()["DEAD"] > dead, "Ray to say so")
    patient.heal()
    assert patient.all_alive()
    assert patient.daemons("head", "worker-2") == others


def test_a_raylet_killed(patient: Patient) -> None:
    """The node comes back by itself, with nobody typing."""
    others = patient.daemons("head", "worker-2")
    old = patient.ray_ids()["worker-1"]
    patient.kill("worker-1", "raylet")

    def noticed() -> bool:  # dead, or so quickly replaced that nobody saw it dead
        return patient.states()["worker-1"] != "alive" or patient.ray_ids().get("worker-1") != old

    patient.within(NOTICED, noticed, "the loss to be noticed")
    patient.until(lambda: patient.all_alive() and patient.ray_ids()["worker-1"] != old, "the worker", 40)
    assert patient.daemons("head", "worker-2") == others


def test_the_dashboard_killed(patient: Patient) -> None:
    """A running job goes on, and following it loses nothing (see test_follow); it is back by itself."""
    job = patient.submit("--", "python", "-c", TICKS.format(n=40))
    patient.prints(job, "tick 1")
    workers, rest = patient.daemons("worker-1", "worker-2"), patient.rest
    patient.kill("head", "dashboard")
    assert patient.states()["worker-1"] != "dead"  # whether it answered or not, this would be a lie
    patient.until(rest.works, "the dashboard to be back", 30)
    assert patient.all_alive()
    patient.mine.run("logs", "-f", job)
    assert patient.job(job)["state"] == "succeeded"
    assert patient.daemons("worker-1", "worker-2") == workers


def test_an_agent_killed(patient: Patient) -> None:
    """Ray ends the raylet of an agent that died: the node comes back, and nothing else is touched."""
    others = patient.daemons("head", "worker-2")
    old = patient.ray_ids()["worker-1"]
    (agent,) = [pid for pid, command in patient.processes("worker-1").items() if "DashboardAgent" in command]
    os.kill(agent, signal.SIGKILL)
    patient.until(lambda: patient.ray_ids().get("worker-1", old) != old, "the node to be another", 60)
    patient.until(patient.all_alive, "all to be alive", 40)
    assert patient.daemons("head", "worker-2") == others


def test_a_process_of_a_task_killed(patient: Patient) -> None:
    """Ray tries the task again; no node is called anything but alive."""
    patient.script(
        "once.py",
        "import os, ray\nray.init(log_to_driver=False)\n"
        "@ray.remote(max_retries=1, resources={'at_worker': 1})\n"
        "def once(mark):\n"
        "    if not os.path.exists(mark):\n        open(mark, 'w').close(); os.kill(os.getpid(), 9)\n"
        "    return 'the second time'\n"
        "print(ray.get(once.remote(os.environ['HELIO_OUTPUTS'] + '/mark')))\n",
    )
    assert "the second time" in patient.mine.run("run", "--", "python", "once.py")
    assert patient.all_alive()


def test_the_whole_head_lost(patient: Patient) -> None:
    """`up` restores it; the workers live on, with what ran there. What died with it is called lost."""
    assert set(counters(patient, "make").values()) == {"1"}
    at_head = patient.submit("--", "python", "-c", TICKS.format(n=3000))
    at_worker = patient.submit("--resources", '{"at_worker": 1}', "--", "python", "-c", TICKS.format(n=200))
    patient.prints(at_head, "tick 1")
    patient.prints(at_worker, "tick 1")
    workers = patient.daemons("worker-1", "worker-2")
    patient.kill_all("head")
    assert patient.states() == {"head": "dead", "worker-1": "cut off", "worker-2": "cut off"}
    patient.heal()
    assert patient.all_alive()
    assert patient.job(at_head)["state"] == "lost"
    assert patient.job(at_worker)["state"] == "running"
    assert patient.daemons("worker-1", "worker-2") == workers
    seen = counters(patient, "end")
    assert seen == {"head-0": "gone", "head-1": "1", "worker-0": "2", "worker-1": "2"}
    # It goes on to its last line, but Ray writes down no result of it any more; we say no more than we know.
    assert patient.mine.run("logs", "-f", at_worker, code=1).count("tick") == 200
    assert patient.job(at_worker)["state"] == "lost"
