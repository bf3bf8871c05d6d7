"""The server: pages, the API, uploads."""
