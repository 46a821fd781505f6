"""How the user is reached outside of the page."""
