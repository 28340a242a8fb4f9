"""What screens are made of: tables, the log, small dialogs' parts."""
