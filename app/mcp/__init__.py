"""The interface for agents: `Runs` as tools of the Model Context Protocol, within an allowance."""
