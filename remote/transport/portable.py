"""POSIX sh for what systems have under different names: GNU, busybox and BSD (macOS)."""

SHA = """\
sha() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
"""
"""Defines `sha [FILE...]`: SHA-256 of files or of standard input, as sha256sum prints it."""

REFLINK = "reflink=; cp --reflink=auto --version >/dev/null 2>&1 && reflink=--reflink=auto"
"""Sets `$reflink` where cp can share blocks until one side writes (GNU coreutils)."""
