"""The interface for agents: `Runs` as Model Context Protocol tools, within an allowance."""
