"""The engine without a model: understands sentences of a fixed grammar."""
