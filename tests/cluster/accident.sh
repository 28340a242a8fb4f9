#!/bin/bash
# What happens to one sbatch of a login host. A test copies it to ROOT/accidents/sbatch, where it is
# called as `sbatch REAL ARGUMENT...`; beside it NAME.sbatch says what is due for the job of that name
# (any.sbatch: for every job), `small` which folder can be filled, and `bystander` the id of another live job
# of the same person.
here=${0%/*} real=$1; shift
for word; do
  case $word in --job-name=*) name=${word#*=} ;; --chdir=*) run=${word#*=} ;; esac
done
due=$here/$name.sbatch
[[ -r $due ]] || due=$here/any.sbatch
[[ -r $due ]] || exec "$real" "$@"
fill=$(cat "$here/small")/fill-$name
wordings=(
  'wrapper: error: the quota database does not answer'
  'sbatch: error: cli_filter plugin terminated with error'
  'sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified'
  'sbatch: error: Batch job submission failed: Protocol authentication error'
  'sbatch: error: Unable to allocate resources: Unspecified error'
  'submit_wrapper: line 31: bc: command not found'
  'slurm_load_jobs error: expired credential'
  'Job submitted. Usage could not be recorded (accounting hiccup).'
  'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy'
  ''
)
read -r kind detail <"$due"
case $kind in
  fails)                  # accepted, and the wrapper ends with an error and words of its own
    "$real" "$@" >/dev/null 2>&1
    echo "${wordings[detail % ${#wordings[@]}]}" >&2
    exit $((detail % 3 + 1)) ;;
  silent)                 # accepted, with status 0 and no words
    "$real" "$@" >/dev/null 2>&1
    exit 0 ;;
  digits)                 # lines of digits before the id, in one way or another
    case $((detail % 3)) in
      0) echo 2026; echo 7; "$real" "$@" ;;
      1) id=$("$real" "$@"); printf '%s\n' "$((id - 1))" "$id" "$((id + 1))" ;;
      2) echo 'evidence id 4'; "$real" "$@" >/dev/null; echo 5 ;;
    esac ;;
  stranger)               # another live job's id, with the own one or without
    bystander=$(cat "$here/bystander")
    echo "$bystander"
    if ((detail % 2)); then "$real" "$@"; else "$real" "$@" >/dev/null; fi ;;
  late)                   # it says that it failed, and submits a second later
    setsid bash -c 'sleep 1; note=$0; "$@"; mv "$note" "$note.done"' "$due" "$real" "$@" >/dev/null 2>&1 </dev/null &
    echo "sbatch: error: Batch job submission failed: Unspecified error" >&2
    exit 1 ;;
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
