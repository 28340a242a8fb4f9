"""Text of bash as words: where each character comes from, and what the words become."""
