"""Supporting code of the lessons, with one folder for each subject."""
