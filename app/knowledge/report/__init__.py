"""Findings laid out for people and for programs, silenced by comments, and applied as edits."""
