"""Two processes that use each other's objects: the codec, the endpoints, the proxies."""
