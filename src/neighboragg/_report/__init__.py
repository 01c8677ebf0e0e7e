"""Did trust help on these rows: one summary as text, HTML, numbers and plots."""
