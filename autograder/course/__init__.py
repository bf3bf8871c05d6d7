"""The trip of a notebook: read, checked, exported, released, built by students."""
