"""The engine `openai`: any endpoint that speaks OpenAI's protocol, for every role."""
