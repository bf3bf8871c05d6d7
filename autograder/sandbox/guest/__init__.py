"""The code that runs inside the sandbox, next to untrusted code.

Once a student's cell has run, the grader trusts nothing here, because this code and the student's share an interpreter.
While grading, the sandbox contains only this folder and `rpc` of `autograder`, and neither imports anything else of it.
`package` runs in a separate sandbox, which also contains the exporter in `autograder.course`: `package.build` imports
the exporter.
"""
