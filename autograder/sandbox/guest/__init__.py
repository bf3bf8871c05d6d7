"""What runs inside the sandbox, next to untrusted code.

Once a student's cell has run, the grader trusts nothing here: both share an interpreter. While grading, the sandbox
sees of `autograder` only this folder and `rpc`, which import nothing else of it. `package` runs in a sandbox of its
own, which is also shown the exporter in `autograder.course`: `package.build` imports it.
"""
