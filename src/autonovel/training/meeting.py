"""How the processes of one start find each other, also after torchrun has started all of them again.

torchrun's store may outlive the processes (torch 2.13), and then still holds the addresses of those that died: new ones
would wait for them for ever.  Its counter of restarts is that of each machine alone.  So the first process thinks of a
name for this start and tells it to every process that is there now; what is said under that name is fresh.
"""

import time
import uuid

from torch.distributed.distributed_c10d import Store

SECONDS_BETWEEN_LOOKS = 0.05


def name_of_start(store: Store, rank: int, world: int) -> str:
    """Return a name that all processes alive now agree on, and none before."""
    own = uuid.uuid4().hex
    if rank:
        store.set(f"here is {rank}", own)
        found = store.get(f"for {own}").decode()  # waits until the first process, which is alive too, has answered
        store.add(f"came to {found}", 1)
        return found
    answered: dict[int, str] = {}
    while store.add(f"came to {own}", 0) < world - 1:
        for other in range(1, world):
            key = f"here is {other}"
            theirs = store.get(key).decode() if store.check([key]) else ""
            if theirs and answered.get(other) != theirs:  # perhaps of a dead process: its successor will say another
                store.set(f"for {theirs}", own)
                answered[other] = theirs
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return own
