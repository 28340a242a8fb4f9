"""Parts of screens and dialogs: tables, the log, fields and coloured text."""
