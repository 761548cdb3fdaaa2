"""Choice of a rank's device, the CPU or a GPU of its own, and of the communicator between GPUs."""
from __future__ import annotations

import socket

from swell.core.errors import InputError
from swell.core.devices import make_space


def on_device(communicator, device: str, messages: str | None = None):
    """Return (this rank's space, the communicator for vectors in it). A repeated call for the same device returns the
    same pair, kept in ``communicator.places``.

    Parameters
    ----------
    communicator : Communicator
        The communicator that the ranks were started with.
    device : {"cpu", "cuda"}
    messages : {"peer", "nccl"}, optional
        How GPUs communicate: by kernels that write to one another's memory, or by NCCL. Default: by kernels if all
        ranks are on one machine and its GPUs reach one another's memory, else by NCCL.

    Raises
    ------
    InputError, MissingDependency
        On every rank, if the ranks disagree, or a machine has fewer GPUs than ranks and ``share_gpus`` is not set.
    """
    communicator.require_equal(device, "the device")
    if device not in communicator.places:
        with communicator.agreed():
            if device not in ("cpu", "cuda"):
                raise InputError(f"device={device!r} across ranks: expected 'cpu', or 'cuda' for each rank's own GPU")
            gpu, shared = _gpu(communicator) if device == "cuda" else (None, False)
            space = make_space(device if gpu is None else f"cuda:{gpu}")
        if device == "cuda":
            messages = messages or communicator.messages
            communicator.places[device] = space, _between_gpus(communicator, space, messages, shared)
        else:
            communicator.places[device] = space, communicator
    return communicator.places[device]


def _between_gpus(communicator, space, messages, shared):
    """Return a new communicator between the ranks' GPUs, a PeerCommunicator or an NCCLCommunicator. ``space``: the
    space of this rank's GPU; ``messages`` as in ``on_device``; ``shared``: True if some ranks share a GPU."""
    from swell.distributed.nccl import NCCLCommunicator
    from swell.distributed.peer import PeerCommunicator, reachable
    possible = reachable(communicator, space)
    communicator.require_equal(messages, "how GPUs communicate (messages)")
    with communicator.agreed():
        if checked_messages(messages) == "peer" and not possible:
            raise InputError("messages='peer' needs all ranks on one machine, and GPUs that reach one another's memory "
                             "(nvidia-smi topo -p2p r): take messages='nccl'")
        if shared and (messages == "nccl" or not possible):
            raise InputError("ranks that share a GPU speak by messages='peer', since NCCL refuses them. This needs all "
                             "ranks on one machine, with GPUs that reach one another's memory: "
                             + ("leave messages out" if possible else "start a rank for each GPU"))
    return (PeerCommunicator if possible and messages != "nccl" else NCCLCommunicator)(communicator, space)


def checked_messages(messages):
    """Return ``messages`` if it is "peer", "nccl" or None; otherwise raise InputError."""
    if messages not in (None, "peer", "nccl"):
        raise InputError(f"messages={messages!r}: expected 'peer' or 'nccl'")
    return messages


def _gpu(communicator):
    """Return (the index of this rank's GPU, True if ranks share GPUs). The index counts the GPUs that this process
    sees: all of the machine, or only its own if the launcher hides the others."""
    from swell.core.cuda import require_cupy
    cupy, count = require_cupy()
    device = communicator.local_rank % count
    address = socket.gethostname(), cupy.cuda.runtime.deviceGetPCIBusId(device)
    names = communicator.allgather(address)
    shared = len({*names}) < len(names)
    if shared and not communicator.share_gpus:
        raise InputError(f"{communicator.local_size} ranks on this machine and {count} of its GPUs: each wants a GPU "
                         f"of its own; start {count} ranks a machine, mpiexec -n {count}, or let ranks share GPUs, "
                         "which is slower: swell.distributed.init(share_gpus=True), --share-gpus")
    return device, shared
