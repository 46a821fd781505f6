"""Flask, and only here: the page, its API and its guard."""
