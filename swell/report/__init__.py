"""Pictures and reports of solves: convergence plots, pictures of patterns and levels, HTML reports.

Figures are made with matplotlib's ``Figure`` directly, so that no back end is chosen and no global state changes.
"""
from swell.report.convergence import plot
from swell.report.html import html
from swell.report.pattern import picture

__all__ = ["html", "picture", "plot"]
