
# lumitui_stage NAME...: set STAGE_NAME to the file or folder that `stage:` in the job file calls NAME.
lumitui_stage() {
  local name place
  for name in "$@"; do
    place=$(readlink -f "$RUN_DIR/stage/$name") || place=
    [[ -e $place ]] || lumitui_refuse "what was staged as $name is no longer on the site (resubmit it with --code current)"
    export "STAGE_$name=$place"
  done
}
