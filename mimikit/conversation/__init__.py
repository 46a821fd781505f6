"""What was said: inbox, history, questions and turns."""
