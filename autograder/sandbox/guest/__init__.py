"""The code that runs inside the sandbox, next to untrusted code.

Once a student's cell has run, the grader trusts nothing here, because this code and the student's share an interpreter.
During grading, this folder and `rpc` are the only parts of `autograder` in the sandbox, and neither imports any other
part. `package` runs in a separate sandbox. That sandbox also contains the exporter in `autograder.course`, which
`package.build` imports.
"""
