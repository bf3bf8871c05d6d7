"""What runs inside the sandbox beside untrusted code, and the language both sides speak.

Nothing here may be trusted by the grader once a student's cell has run: the same interpreter holds both.
This folder is the only part of `autograder` that the sandbox can see; it imports nothing else of it.
"""
