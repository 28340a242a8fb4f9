"""YAML documents read and checked: every mistake as a sentence with file and line."""
