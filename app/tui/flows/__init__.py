"""Operations that the user starts and the app completes: sends, cancels, demo, quitting."""
