"""Ray, as the engine uses it: the module, its errors, and the connection to a cluster."""

import contextlib
import importlib
import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from oxigrad.extend import library

# The library, and not the package that this file is in, which has the name too.
ray: Any = library("ray", "the engine of Ray needs ray: python -m pip install 'oxigrad[ray]'")
_exceptions: Any = importlib.import_module("ray.exceptions")
RayError: type[Exception] = _exceptions.RayError
GetTimeoutError: type[Exception] = _exceptions.GetTimeoutError
OwnerDiedError: type[Exception] = _exceptions.OwnerDiedError
RayActorError: type[Exception] = _exceptions.RayActorError
RayTaskError: Any = _exceptions.RayTaskError


def connect(address: str | None, workers: int, *, allow_insecure: bool) -> None:
    """Connects this program to Ray, unless it is connected.

    Without an address, Ray is started on this machine, where its processes listen on the loopback interface. It
    authenticates by token, unless ``RAY_AUTH_MODE`` says otherwise: every user of the machine can reach that. Raises
    `PermissionError` for a cluster that other machines may reach and that does not authenticate.
    """
    if ray.is_initialized():
        _check_safety(ray.get_runtime_context().gcs_address, allow_insecure=allow_insecure)
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address != "local":
        _check_safety(address, allow_insecure=allow_insecure)
        ray.init(address=address, configure_logging=False)
        return
    if not (allow_insecure or os.environ.get("RAY_AUTH_MODE", "token").lower() == "token"):
        _refuse("Ray that is started here")
    with _on_loopback():
        ray.init(
            address="local",
            num_cpus=max(os.cpu_count() or 1, workers + 1),
            include_dashboard=False,
            configure_logging=False,
        )
    token = Path.home() / ".ray" / "auth_token"
    with contextlib.suppress(OSError):  # Ray may keep it elsewhere
        token.chmod(0o600)


@contextlib.contextmanager
def _on_loopback() -> Iterator[None]:
    """A context in which Ray is started on the loopback interface.

    Ray has no argument for that: it replaces a loopback address that it is given by that of the host, except where it
    takes no other machines into a cluster, as on macOS and Windows.
    """
    constants = importlib.import_module("ray._private.ray_constants")
    name = "ENABLE_RAY_CLUSTER"
    before = getattr(constants, name, None)
    setattr(constants, name, False)
    try:
        yield
    finally:
        setattr(constants, name, before)


def _check_safety(address: str, *, allow_insecure: bool) -> None:
    has_token = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    if not (allow_insecure or has_token or _is_loopback(address)):
        _refuse(f"Ray at {address}")


def _refuse(what: str) -> NoReturn:
    raise PermissionError(
        f"{what} can be reached by other machines, and runs the code of whoever reaches it: expected "
        "RAY_AUTH_MODE=token, or allow_insecure=True on a network that you trust"
    )


def _is_loopback(address: str) -> bool:
    host = address.rpartition("://")[2]
    host = host.rpartition(":")[0].strip("[]") if ":" in host else host
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or "auto"
        return False
