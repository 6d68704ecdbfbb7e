"""What looks like somebody's credentials, by its name or by its first bytes."""

from __future__ import annotations

import re

LOOKED_AT = 64 * 1024  # bytes of a file that may tell; keys and tokens are small

_FOLDERS = re.compile(rb"\.(?:aws|ssh|gnupg|kube|azure|gcloud|oci)", re.IGNORECASE)
_FILES = re.compile(
    rb"""
    \.env(?!\.(?:example|sample|template|dist|defaults?)$)(?:\..+)? | .+\.env
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?
    | .*\.(?:p12|pfx|jks|keystore|ppk|kdbx)
    | (?:.*[_.-])?credentials?(?:\.(?:json|ya?ml|toml|ini|csv))? | gha-creds-.*\.json | client_secret.*\.json
    | service[_-]?account.*\.json | application_default_credentials\.json
    | [._]netrc | \.pgpass | \.my\.cnf | \.pypirc | \.git-credentials | \.htpasswd | \.dockercfg
    | kubeconfig | .+\.kubeconfig | \.vault-token | \.boto | \.s3cfg | secrets?\.(?:ya?ml|toml|json|env)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_SERVICE_ACCOUNT = re.compile(rb'"type"\s*:\s*"(?:service_account|authorized_user|external_account)"')
_TOKEN_LINE = re.compile(rb"^[^#\n]*_authToken\s*=", re.MULTILINE)
_KEY_FILES = (b".pem", b".key", b".asc", b".crt", b".cer")


def by_name(name: bytes, folder: bool) -> bool:
    """Whether the name alone tells.

    >>> by_name(b".env", False), by_name(b".env.example", False), by_name(b".aws", True)
    (True, False, True)
    >>> by_name(b"id_rsa", False), by_name(b"id_rsa.pub", False)
    (True, False)
    """
    return (_FOLDERS if folder else _FILES).fullmatch(name) is not None


def by_content(name: bytes, start: bytes) -> bool:
    """Whether its first bytes tell.

    >>> by_content(b"a.pem", b"-----BEGIN CERTIFICATE-----"), by_content(b"x", b"-----BEGIN PRIVATE KEY-----")
    (False, True)
    """
    if name.lower().endswith(_KEY_FILES):
        return _PRIVATE_KEY.search(start) is not None
    if name.endswith(b".json"):
        docker = name == b"config.json" and b'"auths"' in start and b'"auth"' in start
        return docker or (b'"private_key"' in start and _SERVICE_ACCOUNT.search(start) is not None)
    if name == b".npmrc":
        return _TOKEN_LINE.search(start) is not None
    return start.startswith(b"-----BEGIN") and _PRIVATE_KEY.match(start) is not None
