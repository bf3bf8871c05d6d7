"""What a faster stage would bring: arms of an experiment, trial runs, stand-ins, forecasts."""
