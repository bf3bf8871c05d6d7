"""Monitoring of servers by Prometheus or a built-in reader: alert rules, a dashboard, and figures of its panels."""
