"""The script of `host_setup`: commands as data, each once, and how the first that fails is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

from heliostat.core.downloads import download_env, near
from heliostat.core.owner import Owner
from heliostat.core.resource import Ref
from heliostat.core.spec import Spec
from heliostat.ray.host_setup import script
from heliostat.ray.surroundings import surroundings


def run(home: Path, *commands: str, cluster: str = "c-1") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-s"],
        input=script(commands, cluster, "node01"),
        cwd=home,
        umask=0o022,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_commands_run_once_in_order_until_they_change(tmp_path: Path) -> None:
    commands = ("echo 'a b' >>done", "umask >>done", 'printf "%s\\n" "$(id -u)" >/dev/null')
    first = run(tmp_path, *commands)
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[0] == "helio-step echo 'a b' >>done"
    assert (tmp_path / "done").read_text() == "a b\n0022\n", "with the account's own umask"
    assert run(tmp_path, *commands).stdout == ""
    run(tmp_path, "echo c >>done")
    run(tmp_path, "echo c >>done", cluster="d-1")
    assert (tmp_path / "done").read_text() == "a b\n0022\nc\nc\n", "another cluster is another matter"


def test_the_first_that_fails_ends_it_with_its_own_code_and_last_words(tmp_path: Path) -> None:
    commands = ("echo earlier", "echo no such driver; exit 9", "touch never")
    done = run(tmp_path, *commands)
    assert (done.returncode, done.stderr) == (9, "no such driver\n")
    assert done.stdout.splitlines()[-1] == "helio-step echo no such driver; exit 9"
    assert not (tmp_path / "never").exists()
    assert not (tmp_path / ".local").exists(), "nothing says that it is done"
    logs = list((tmp_path / ".cache/heliostat/host_setup").glob("*.log"))
    assert "earlier" in logs[0].read_text()
    assert oct(logs[0].stat().st_mode & 0o777) == "0o600"
    assert run(tmp_path, *commands).returncode == 9, "it is tried again"


def test_programs_on_the_hosts_pass_the_proxy_by() -> None:
    proxy = "http://me:pw@proxy:3128"
    spec = Spec(cluster="c", where="ssh", proxy=proxy, mirrors={"pypi": "http://u:p@m.lab:81/simple"})
    env = download_env(spec)
    assert {env[name] for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")} == {proxy}
    assert env["PIP_INDEX_URL"] == env["UV_DEFAULT_INDEX"] == "http://u:p@m.lab:81/simple"
    assert env["PIP_TRUSTED_HOST"] == "m.lab:81"
    assert near("10.0.0.1", "")["no_proxy"] == "localhost,127.0.0.1,10.0.0.1"
    facts = {"home": "/h", "host": "node01", "gcs": "10.0.0.1:6379", "token_path": "/h/token"}
    head = Ref(kind="node", key="head", id="x", owner=Owner("me", "c"), facts=facts)
    told = surroundings(spec, head, head)
    assert told["https_proxy"] == proxy
    assert told["NO_PROXY"] == "localhost,127.0.0.1,10.0.0.1,node01"
    assert "https_proxy" not in surroundings(Spec(cluster="c"), head, head)
