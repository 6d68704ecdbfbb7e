"""How nodes download: the file's `proxy` and `mirrors` as the variables that programs know. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from heliostat.core.spec import Spec

# pip, uv (of today and of before 0.4), and uv's own Pythons.
_MIRRORS: Mapping[str, tuple[str, ...]] = {
    "pypi": ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "python": ("UV_PYTHON_INSTALL_MIRROR",),
}
_PROXY = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


def download_env(spec: Spec) -> dict[str, str]:
    """For whatever runs on a node: setups, daemons and through them jobs.

    >>> download_env(Spec(cluster="c", mirrors={"python": "https://mirror.lab/python"}))
    {'UV_PYTHON_INSTALL_MIRROR': 'https://mirror.lab/python'}
    """
    env = dict.fromkeys(_PROXY, spec.proxy) if spec.proxy else {}
    for kind, address in spec.mirrors.items():
        env |= dict.fromkeys(_MIRRORS.get(kind, ()), address)
        if kind == "pypi" and address.startswith("http://"):  # pip takes no packages from there unless told
            env["PIP_TRUSTED_HOST"] = address.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return {name: value for name, value in env.items() if value}


def near(*hosts: str) -> dict[str, str]:
    """What no proxy stands before: this machine, and these."""
    known = ",".join(dict.fromkeys(["localhost", "127.0.0.1", *filter(None, hosts)]))
    return {"no_proxy": known, "NO_PROXY": known}


def masked(text: str) -> str:
    """Addresses without the passwords in them.

    >>> masked("http://me:pass@word@proxy:3128 and http://proxy:3128")
    'http://me:…@proxy:3128 and http://proxy:3128'
    """
    return re.sub(r"(://[^/\s:@]*:)[^/\s]*@", r"\1…@", text)
