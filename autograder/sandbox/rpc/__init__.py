"""Remote procedure calls between the grader and the guest (the process in the sandbox).

No general RPC library is used, because such a library lets either side call and unpickle too much. Here, plain values
are copied, and the guest may use only the objects that a check passes to it.
"""
