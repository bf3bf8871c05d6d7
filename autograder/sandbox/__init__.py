"""Where strangers' code runs: the sandbox, what runs inside it, and the rpc between both sides."""
