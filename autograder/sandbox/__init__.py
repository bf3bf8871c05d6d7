"""The sandbox for untrusted code, the programs that run inside it, and the RPC between them and the grader."""
