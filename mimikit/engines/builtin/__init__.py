"""The engine without a model: reads sentences of a fixed grammar and does what they ask."""
