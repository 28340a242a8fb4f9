"""Operations that a user starts and the app completes: sends, cancels, the guide, quitting."""
