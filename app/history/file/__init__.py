"""The history's file: opened, locked, checked, set aside when damaged."""
