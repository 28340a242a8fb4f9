#!/bin/bash
# What happens to one sbatch of a login host. A test copies it to ROOT/accidents/sbatch, where it is
# called as `sbatch REAL ARGUMENT...`; beside it NAME.sbatch says what is due for the job of that name
# (any.sbatch: for every job), and `small` which folder can be filled.
here=${0%/*} real=$1; shift
for word; do
  case $word in --job-name=*) name=${word#*=} ;; --chdir=*) run=${word#*=} ;; esac
done
due=$here/$name.sbatch
[[ -r $due ]] || due=$here/any.sbatch
[[ -r $due ]] || exec "$real" "$@"
fill=$(cat "$here/small")/fill-$name
case $(cat "$due") in
  killed)                 # accepted, and nothing said
    "$real" "$@" >/dev/null 2>&1
    kill -KILL $$ ;;
  session-killed)         # accepted, and the shell that would write the receipt is dead too
    "$real" "$@" >/dev/null 2>&1
    kill -KILL 0 ;;
  session-killed-before)  # the lock is taken, and nobody submits
    kill -KILL 0 ;;
  frozen)                 # accepted when the run was given up, by a process nobody knows of
    setsid bash -c '
      mkdir "$1.away"
      for ((i = 0; i < 300; i++)); do [[ -L $0/attempt-1.claim ]] && break; sleep .1; done
      note=$1; shift
      "$@"
      mv "$note" "$note.done"' "$run" "$due" "$real" "$@" >/dev/null 2>&1 </dev/null &
    until [[ -d $due.away ]]; do sleep .02; done
    kill -KILL 0 ;;
  disk-full)              # accepted, and no byte can be written of it
    id=$("$real" "$@"); rc=$?
    dd if=/dev/zero of="$fill" bs=64k 2>/dev/null
    echo "$id"
    exit $rc ;;
  no-inodes)              # accepted, and no file can be made
    : >"$run/attempt-1.out"
    mkdir "$fill"
    seq -f "$fill/%g" 5000 | xargs touch 2>/dev/null
    exec "$real" "$@" ;;
esac
