"""Remote procedure calls between grader and guest: the codec, the endpoints, the proxies.

No general RPC library is used, because it lets either side call and unpickle too much. Here plain values are copied,
and the guest may use only the objects that a check passes to it.
"""
