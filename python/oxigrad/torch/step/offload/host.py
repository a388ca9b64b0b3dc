"""The choice of a state in host memory for parameters on a device, ``state_device="host"``."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class HostMemory:
    """The value of ``state_device`` for a state in the memory of the host; ``"host"`` is ``HostMemory()``.

    Parameters stay on their device. A step copies gradients into host memory, in pieces; the core updates master
    weights and slots there, and the new parameters are copied back.

    Args:
        fraction: the share of the parameters' bytes whose state is in host memory, from 0 to 1: the largest parameters
            first, up to the first with which it is reached. The others are updated on their device.
        piece: the bytes of a piece, gradients and parameters together; by default a sixteenth of all parameters, from
            32 MiB to 128 MiB. Large pieces save time of the host; small ones overlap copies and updates.
        threads: the largest number of threads of an update, to leave processors to data loaders or a forward pass; by
            default `oxigrad.get_num_threads()`. No bit depends on it.

    Raises `ValueError` for values out of these ranges.

    >>> import torch
    >>> from oxigrad.torch import AdamW, HostMemory
    >>> weight = torch.nn.Parameter(torch.ones(3))  # on a GPU: device="cuda"
    >>> opt = AdamW([weight], lr=0.5, state_device=HostMemory(piece=1 << 20))
    >>> weight.sum().backward()
    >>> opt.step()
    >>> weight.detach(), opt.state[weight]["exp_avg"].device
    (tensor([0.4950, 0.4950, 0.4950]), device(type='cpu'))
    """

    fraction: float = 1.0
    piece: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        ranges = {
            "fraction": (0.0, 1.0),
            "piece": (1, 1 << 40),
            "threads": (1, 1024),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is None and name in ("piece", "threads"):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise ValueError(f"{name} is {value!r}: expected a number from {low} to {high}")
            if name != "fraction" and int(value) != value:
                raise ValueError(f"{name} is {value!r}: expected a whole number")
