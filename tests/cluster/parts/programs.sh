# What the login user finds in PATH: every program of /usr/bin but python (LUMI's is 3.6), Slurm's commands
# counted (and met by an accident that a test put into accidents/COMMAND: a program that gets the real
# command's path and its arguments), the stand-in for singularity. And what an image holds: the same without Slurm.
built() { [[ $2 -nt $1 ]]; }
built "$here/affinity.c" "$ROOT/bin/affinity.so" || gcc -O2 -shared -fPIC -o "$ROOT/bin/affinity.so" "$here/affinity.c"
built "$here/contain.c" "$ROOT/bin/contain" || gcc -O2 -o "$ROOT/bin/contain" "$here/contain.c"
sed "s|@ROOT@|$ROOT|; s|@PYTHON@|$PYTHON|" "$here/singularity" > "$ROOT/bin/singularity.new"
chmod 755 "$ROOT/bin/singularity.new"; mv "$ROOT/bin/singularity.new" "$ROOT/bin/singularity"

mapfile -t commands < <(dpkg -L slurm-client | sed -n 's|^/usr/bin/||p' | while read -r name; do [[ ! -x $PROGRAMS/$name ]] || echo "$name"; done)
if ! built /usr/bin "$ROOT/made/programs" || ! built "$here/parts/programs.sh" "$ROOT/made/programs"; then
  others=(! -name 'python*' ! -name 'pydoc*' ! -name 'pip*' ! -name '2to3*' ! -name slurm-wlm-configurator.html)
  for name in "${commands[@]}"; do others+=(! -name "$name"); done
  find "$ROOT/bin" "$ROOT/imagebin" -type l -delete
  find /usr/bin -maxdepth 1 "${others[@]}" ! -type d ! -name singularity -exec ln -sft "$ROOT/bin" {} +
  find /usr/bin -maxdepth 1 "${others[@]}" ! -type d ! -name singularity -exec ln -sft "$ROOT/imagebin" {} +
  touch "$ROOT/made/programs"
fi
if [[ $APPTAINER ]]; then ln -sf singularity "$ROOT/bin/apptainer"; else rm -f "$ROOT/bin/apptainer"; fi

# One line a call on the login node: seconds, process, command and arguments, tabs between, \ \t \n escaped.
cat > "$ROOT/bin/.counted" <<CONF
#!/bin/bash
name=\${0##*/}
if [[ " $LOGIN_HOST $OTHER_LOGIN_HOST " == *" \$(</proc/sys/kernel/hostname) "* ]]; then
  line=\$EPOCHREALTIME\$'\t'\$PPID\$'\t'\$name
  for word; do word=\${word//\\\\/\\\\\\\\}; word=\${word//\$'\t'/\\\\t}; line+=\$'\t'\${word//\$'\n'/\\\\n}; done
  printf '%s\n' "\$line" >> $ROOT/log/calls.log
fi
[[ ! -x $ROOT/accidents/\$name ]] || exec $ROOT/accidents/\$name $PROGRAMS/\$name "\$@"
exec $PROGRAMS/\$name "\$@"
CONF
chmod 755 "$ROOT/bin/.counted"
for name in "${commands[@]}"; do [[ -L $ROOT/bin/$name ]] || ln -sf .counted "$ROOT/bin/$name"; done
[[ -f $ROOT/log/calls.log ]] || : > "$ROOT/log/calls.log"; chmod 666 "$ROOT/log/calls.log"
