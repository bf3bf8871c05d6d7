"""Two processes that use each other's objects: the codec, the endpoints, the proxies.

Our own, since a general rpc library lets either side call and unpickle too much: here plain values are copied, and the
guest may use only what a check hands out.
"""
