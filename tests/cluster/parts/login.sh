# sshd of the login nodes, and what a login shell sets. Two nodes share one host key, as behind one name; the host
# for files has its own.
[[ -z $MODULES || $MODULES == /* ]] || MODULES=$ROOT/$MODULES
environment="PATH=$ROOT/bin SLURM_CONF=$SLURM_CONF MINILUMI_ROOT=$ROOT"
{ for pair in $environment; do echo "export $pair"; done
  [[ -z $MODULES ]] || echo "export LMOD_SITE_MODULEPATH=$MODULES"; } > "$ROOT/etc/profile"
# /etc/profile sets PATH anew, on nodes too; this comes before Lmod's own file
cat > "$PROFILE" <<CONF
if [ "\$(id -un)" = $LOGIN ] && [ "\${MINILUMI_ROOT:-$ROOT}" = "$ROOT" ] && [ -r "$ROOT/etc/profile" ]; then . "$ROOT/etc/profile"; fi
CONF

[[ -f $ROOT/ssh/hostkey ]] || ssh-keygen -q -t ed25519 -N '' -f "$ROOT/ssh/hostkey"
[[ -f $ROOT/ssh/id ]] || ssh-keygen -q -t ed25519 -N '' -f "$ROOT/ssh/id"
[[ -f $ROOT/ssh/authorized_keys ]] || install -m 644 "$ROOT/ssh/id.pub" "$ROOT/ssh/authorized_keys"
[[ -z $TRANSFER_HOST || -f $ROOT/ssh/transfer_hostkey ]] || ssh-keygen -q -t ed25519 -N '' -f "$ROOT/ssh/transfer_hostkey"
mkdir -p /run/sshd
for host in $LOGIN_HOST $OTHER_LOGIN_HOST $TRANSFER_HOST; do
  name=sshd-$host hostkey=hostkey
  case $host in
    "$LOGIN_HOST") port=$SSH_PORT name=sshd ;;
    "$OTHER_LOGIN_HOST") port=$OTHER_SSH_PORT ;;
    *) port=$TRANSFER_SSH_PORT hostkey=transfer_hostkey ;;
  esac
  cat > "$ROOT/ssh/${name}_config" <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $ROOT/ssh/$hostkey
AuthorizedKeysFile $ROOT/ssh/authorized_keys
StrictModes no
UsePAM no
PrintMotd no
LogLevel VERBOSE
PidFile $ROOT/run/$name.pid
Subsystem sftp /usr/lib/openssh/sftp-server
SetEnv $environment
CONF
  open_door "$name" "$port" "$host"
done
echo "[127.0.0.1]:$SSH_PORT $(cut -d' ' -f1,2 "$ROOT/ssh/hostkey.pub")" > "$ROOT/ssh/known_hosts"
cat > "$ROOT/ssh/config" <<CONF
Host minilumi
  HostName 127.0.0.1
  Port $SSH_PORT
  User $LOGIN
  IdentityFile $ROOT/ssh/id
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile $ROOT/ssh/known_hosts
CONF
if [[ $TRANSFER_HOST ]]; then
  echo "[127.0.0.1]:$TRANSFER_SSH_PORT $(cut -d' ' -f1,2 "$ROOT/ssh/transfer_hostkey.pub")" >> "$ROOT/ssh/known_hosts"
  sed "s/^Host minilumi/Host minitransfer/; s/Port $SSH_PORT/Port $TRANSFER_SSH_PORT/" "$ROOT/ssh/config" > "$ROOT/ssh/config.transfer"
  cat "$ROOT/ssh/config.transfer" >> "$ROOT/ssh/config"; rm "$ROOT/ssh/config.transfer"
fi
wait_for outside ssh -F "$ROOT/ssh/config" -o BatchMode=yes minilumi true
