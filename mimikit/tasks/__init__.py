"""What is to be done: tasks, their queue, their end states, and orders about them."""
