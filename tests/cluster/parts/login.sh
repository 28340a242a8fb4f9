# sshd of the login nodes, and what a login shell sets. Two nodes share one host key, as behind one name.
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
mkdir -p /run/sshd
number=0
for host in $LOGIN_HOST $OTHER_LOGIN_HOST; do
  number=$((number + 1))
  if ((number == 1)); then port=$SSH_PORT name=sshd; else port=$OTHER_SSH_PORT name=sshd-$host; fi
  cat > "$ROOT/ssh/${name}_config" <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $ROOT/ssh/hostkey
AuthorizedKeysFile $ROOT/ssh/authorized_keys
StrictModes no
UsePAM no
PrintMotd no
LogLevel VERBOSE
PidFile $ROOT/run/$name.pid
Subsystem sftp /usr/lib/openssh/sftp-server
SetEnv $environment
CONF
  alive "$ROOT/run/$name.pid" sshd || unshare --uts sh -c "hostname $host && exec /usr/sbin/sshd -f $ROOT/ssh/${name}_config -E $ROOT/log/sshd.log"
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
wait_for ssh -F "$ROOT/ssh/config" -o BatchMode=yes minilumi true
