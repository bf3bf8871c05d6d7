"""Code around compression that module 13 uses: training, accuracy over several seeds, and the pages of a journal."""
