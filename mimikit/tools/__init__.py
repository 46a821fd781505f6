"""What a role may do: tools, who may call them, and the doors to them."""
