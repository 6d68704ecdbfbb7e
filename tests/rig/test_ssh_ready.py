"""What makes hosts ready before Ray starts there: `host_setup`, proxies and mirrors. Without Ray."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heliostat.core.downloads import download_env
from heliostat.core.errors import Unavailable
from heliostat.core.spec import Spec, SshSite
from heliostat.grounds.ssh.hosts import Hosts
from heliostat.grounds.ssh.prepare import prepare
from heliostat.ray.bootstrap import Wanted
from tests.rig import ray_python
from tests.rig.host import Host
from tests.rig.index import INDEX, LOGIN, Index, name
from tests.rig.rig import Rig

pytestmark = pytest.mark.rig

HELIO = str(Path(sys.executable).with_name("helio"))


class Lab:
    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig, self.folder = rig, folder
        self.hosts = rig.new(2)

    def helio(self, *words: str, file: str) -> tuple[int, str]:
        """An exit code, and all that the person saw."""
        hosts = ", ".join(host.name for host in self.hosts)
        whole = f"cluster: lab\nwhere: ssh\npython: /usr/bin/python3\nssh: {{ hosts: [{hosts}] }}\n{file}"
        (self.folder / "helio.yaml").write_text(whole)
        own = {f"HELIO_{name}": str(self.folder / name.lower()) for name in ("STATE", "CACHE", "DATA")}
        done = subprocess.run(
            [HELIO, "--plain", *words],
            cwd=self.folder,
            env={**os.environ, **own, "HELIO_SSH_CONFIG": str(self.rig.config)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def lab(rig: Rig, tmp_path: Path) -> Lab:
    return Lab(rig, tmp_path)


def counts(host: Host) -> str:
    return host.sh("cat /home/lab/count 2>/dev/null", check=False).strip()


def test_host_setup_that_fails_says_where_with_which_code_and_how(lab: Lab) -> None:
    bad = lab.hosts[1]
    bad.sh("touch /home/lab/bad")
    setup = "host_setup: ['echo x >>count', 'echo no driver here >&2; test ! -e bad || exit 7', 'echo end']\n"
    code, said = lab.helio("up", "--yes", file=setup)
    assert code == 2, said
    found = re.search(
        rf"worker-1 failed .*{bad.name}: .*test ! -e bad.* of host_setup ended with exit code 7", said
    )
    assert found, said
    log = re.search(rf"{bad.name}:(~/\.cache/heliostat/host_setup/\S+\.log)", said)
    assert "no driver here" in said
    assert log, said
    assert "no driver here" in bad.sh(f"cat {log[1].replace('~', '/home/lab')}")
    # The other one went on, as far as it could without Ray; nothing stays of either.
    assert lab.hosts[0].sh("tail -n 1 /home/lab/.cache/heliostat/host_setup/*.log") == "end\n"
    assert [host.sh("ls -A /home/lab/.local/share") for host in lab.hosts] == ["", ""]


def test_host_setup_runs_once_for_each_digest_and_may_bring_the_python(lab: Lab) -> None:
    for host in lab.hosts:
        host.sh("cp -L /usr/bin/python3 /usr/bin/hidden; chmod 777 /usr/bin")
        host.no_python()
    bring = "test -e /usr/bin/python3 || cp /usr/bin/hidden /usr/bin/python3"
    setup = f"host_setup: ['echo x >>count', '{bring}']\n"
    _, said = lab.helio("up", "--yes", "--keep", file=setup)
    assert "Ray" in said, said  # it came as far as to the Python, which has none
    lab.helio("up", "--yes", "--keep", file=setup)
    assert [counts(host) for host in lab.hosts] == ["x", "x"]
    lab.helio("up", "--yes", "--keep", file=setup.replace("echo x", "echo y"))
    assert [counts(host) for host in lab.hosts] == ["x\ny", "x\ny"]
    assert lab.helio("down", "--yes", file=setup)[0] == 0
    assert [host.sh("ls -A /home/lab/.local/share") for host in lab.hosts] == ["", ""]


@pytest.fixture
def here(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HELIO_SSH_CONFIG", str(rig.config))
    monkeypatch.setenv("HELIO_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HELIO_CACHE", str(tmp_path / "cache"))
    return tmp_path


def ready(host: Host, **keys: Any) -> tuple[str, dict[str, str]]:
    """Have a Ray 9.9.9 made there, with these keys in the file."""
    spec = Spec(cluster="c", ssh=SshSite(hosts=(host.name,)), **keys)

    async def story() -> tuple[str, dict[str, str]]:
        hosts = Hosts(spec.ssh, "c", lambda _text: None)
        try:
            wanted = Wanted(ray="9.9.9")
            return await prepare(hosts, host.name, "head", wanted, download_env(spec), lambda _event: None)
        finally:
            hosts.close()

    return asyncio.run(story())


def test_ray_comes_through_the_proxy_from_the_mirror_and_nobody_sees_the_password(
    rig: Rig, here: Path
) -> None:
    host = rig.new()[0]
    with Index(f"{rig.base}.1") as index:
        python, told = ready(host, proxy=index.proxy, mirrors={"pypi": INDEX})
    assert told == {}
    assert host.sh(f"{python} -c 'import ray; print(ray.__version__)'") == "9.9.9\n"
    assert [known for _, known in index.asked] == [True] * len(index.asked)
    assert f"{INDEX}/ray/" in [address for address, _ in index.asked]
    assert LOGIN[1] not in host.sh("cat /home/lab/.cache/heliostat/python/*.log")


def test_a_host_without_internet_gets_ray_from_a_bundle(
    rig: Rig, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := ray_python.missing():  # the bundle is for this Python, so hosts must have the same
        pytest.skip(f"hosts need {lacking}")
    host = rig.new()[0]
    with pytest.raises(Unavailable, match="installing Ray") as nothing:
        ready(host, mirrors={"pypi": "file:///nowhere"})  # as without internet, and found out at once
    assert "helio bundle" in nothing.value.fix
    (here / "helio.yaml").write_text("cluster: c\nray: 9.9.9\n")
    with Index("127.0.0.1") as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.direct)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        done = subprocess.run(
            [HELIO, "bundle"], cwd=here, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "Ray 9.9.9 for Python" in done.stdout
    assert "1 packages" in done.stdout
    python, told = ready(host)
    assert host.sh(f"{python} -c 'import ray; print(ray.__version__)'") == "9.9.9\n"
    assert host.sh(f"ls {told['PIP_FIND_LINKS']}").strip() == name()
    assert ready(host) == (python, told)
    assert host.sh("ls -A /home/lab/.cache/heliostat/bundles").split() == [Path(told["PIP_FIND_LINKS"]).name]


def test_the_plan_hides_a_password_of_the_proxy(lab: Lab) -> None:
    code, said = lab.helio("plan", file="proxy: http://me:s3cret@proxy.lab:3128\n")
    assert code == 0, said
    assert "http://me:…@proxy.lab:3128" in said
    assert "s3cret" not in said
