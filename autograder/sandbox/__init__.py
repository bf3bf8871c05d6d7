"""The sandbox for untrusted code, the programs that run inside it, and the RPC between the two sides."""
