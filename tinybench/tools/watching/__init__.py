"""Servers watched: Prometheus or an own reader, alert rules, a dashboard, and its panels drawn here."""
