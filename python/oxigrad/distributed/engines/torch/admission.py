"""Admission to a job: values in the store of a rendezvous are checked, and newcomers show the token of the job.

Whoever reaches the port of the store reads and writes it. So a value is used only where it has the form that a member
gives it, and a process is admitted only where the job accepts newcomers, and the process proves that it has the token,
which is never in the store.
"""

import hashlib
import hmac
import json
import os
from typing import Any

from oxigrad.distributed.errors import CommunicationError, Refused

TOKEN = "OXIGRAD_TOKEN"  # noqa: S105 - the name of the variable
"""The variable of the environment that has the token: of the workers, and of a process that joins them."""

_SHORTEST = 16


def token_of_environment(purpose: str) -> bytes:
    """The token of the job. Raises `CommunicationError` where the environment has none, or a short one."""
    token = os.environ.get(TOKEN, "")
    if len(token) < _SHORTEST:
        what = f"has {len(token)} characters" if token else "is not set"
        raise CommunicationError(
            f"{purpose}: {TOKEN} {what}: expected at least {_SHORTEST}, the same for the workers and for those that "
            f"join them, as by export {TOKEN}=$(python -c 'import secrets; print(secrets.token_hex())')"
        )
    return token.encode()


def proof(token: bytes, job: bytes, uid: str) -> str:
    """The proof that the process ``uid`` shows to the workers of a job: no other process, and no other job, can use it.

    >>> proof(b"a token", b"a job", "j1") == proof(b"a token", b"a job", "j2")
    False
    """
    return hmac.new(token, job + uid.encode(), hashlib.sha256).hexdigest()


def has_token(token: bytes, job: bytes, uid: str, shown: str) -> bool:
    """Whether a process has shown that it has the token."""
    return hmac.compare_digest(proof(token, job, uid).encode(), shown.encode())


def parsed(key: str, text: str, form: Any) -> Any:
    """A value of the store in one form: a type, a list of one, a dict of types by key, or of one type.

    >>> parsed("1/next", '["0", "j1"]', [str])
    ['0', 'j1']

    Raises `Refused` for any other.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not _is_of(value, form):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise Refused(
            "rendezvous",
            f"the key {key} of the rendezvous is {shown!r}: expected {_shown(form)}, as a worker writes it",
        )
    return value


def _is_of(value: Any, form: Any) -> bool:
    if isinstance(form, list):
        return isinstance(value, list) and all(_is_of(each, form[0]) for each in value)
    if isinstance(form, dict) and str in form:
        return isinstance(value, dict) and all(_is_of(each, form[str]) for each in value.values())
    if isinstance(form, dict):
        return isinstance(value, dict) and all(_is_of(value.get(key), each) for key, each in form.items())
    return type(value) is form


def _shown(form: Any) -> str:
    if isinstance(form, list):
        return f"a list of {_shown(form[0])}"
    if isinstance(form, dict):
        return "an object with " + ", ".join("texts" if key is str else key for key in form)
    return {str: "a text", int: "an integer", bool: "true or false"}[form]
