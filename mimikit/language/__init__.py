"""How it speaks: times read and said, one catalogue of phrases, text made harmless to show."""
