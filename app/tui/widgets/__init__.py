"""Parts of screens and dialogs: tables, the log, fields, text in colour."""
