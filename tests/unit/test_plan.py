from __future__ import annotations

from heliostat.core.owner import Owner
from heliostat.core.plan import Cost, diff
from heliostat.core.resource import Digests, Ref, Resource, State

NOTHING = Digests()
OWNER = Owner("me", "c")


def a_ref(key: str, *, state: State = State.READY, digests: Digests = NOTHING) -> Ref:
    return Ref(kind="node", key=key, id=key, owner=OWNER, state=state, digests=digests)


def test_what_is_wanted_and_absent_is_created_and_what_is_there_and_unwanted_is_deleted() -> None:
    plan = diff([Resource(kind="node", key="a")], [a_ref("b")])
    assert [r.key for r in plan.create] == ["a"]
    assert [r.key for r in plan.delete] == ["b"]


def test_the_dearest_difference_decides() -> None:
    wanted = Resource(kind="node", key="a", digests=Digests(live="1", restart="1", replace="1"))
    assert diff([wanted], [a_ref("a", digests=wanted.digests)]).empty
    found = a_ref("a", digests=Digests(live="2", restart="2", replace="1"))
    assert diff([wanted], [found]).change[0].cost is Cost.RESTART


def test_what_is_leaving_counts_as_gone() -> None:
    plan = diff([Resource(kind="node", key="a")], [a_ref("a", state=State.LEAVING)])
    assert [r.key for r in plan.create] == ["a"]
    assert not plan.delete
