# The login user, the project's groups, a home with little room.
getent group "$ACCOUNT" >/dev/null || { groupadd "$ACCOUNT"; echo "$ACCOUNT" >> "$ROOT/made/groups"; }
if ! id "$LOGIN" >/dev/null 2>&1; then
  mkdir -p "$HOME_BASE"
  useradd -M -d "$HOME_BASE/$LOGIN" -s /bin/bash "$LOGIN"
  usermod -p '*' "$LOGIN"                     # a locked account ("!") may not log in, even by key
  touch "$ROOT/made/user"
fi
id -nG "$LOGIN" | grep -qw "$ACCOUNT" || usermod -aG "$ACCOUNT" "$LOGIN"
home=$(getent passwd "$LOGIN" | cut -d: -f6)
mount_sized "$home" "$HOME_MB" "mode=700,uid=$(id -u "$LOGIN"),gid=$(id -g "$LOGIN")" || true
if [[ ! -e $home/.profile ]]; then cp -rT /etc/skel "$home"; chown -R "$LOGIN:" "$home"; fi
