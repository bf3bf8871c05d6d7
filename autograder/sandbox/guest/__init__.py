"""What runs inside the sandbox beside untrusted code, and the language both sides speak.

Nothing here may be trusted by the grader once a student's cell has run: the same interpreter holds both.
Of `autograder` the sandbox sees only this folder and `rpc`, which import nothing else of it; `package` alone, which
builds a student's notebook, runs where the course's exporter is visible too.
"""
