"""What is to be done: tasks, their queue, their end states, and commands about them."""
