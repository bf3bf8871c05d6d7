"""Code that the lessons use, one folder for each subject."""
