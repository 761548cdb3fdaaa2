"""The papers behind swell: their tables, figures and conclusions, beside swell's numbers and with verdicts."""
