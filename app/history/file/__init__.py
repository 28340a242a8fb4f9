"""The history's file: opening, locking and checking it, and setting a damaged one aside."""
