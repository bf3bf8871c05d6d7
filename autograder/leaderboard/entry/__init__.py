"""Is a file a safe and valid entry?"""
