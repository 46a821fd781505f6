"""The tools of each role, and the MCP server that offers them."""
