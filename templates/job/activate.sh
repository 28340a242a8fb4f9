
# ---- What a job with `activate:` does besides, after the functions above (templates/job/activate.sh).

# lumitui_activate PLACE: a virtual environment or a conda environment by its folder, a folder with pixi.toml, or
# a conda environment by its name. Runs without -e: the hooks are written for a user's shell.
lumitui_activate() {
  local tool hook file why= strict=${-//[^e]/}
  # An activation that calls `exit 0` would end the job as done, without its program.
  lumitui_place=$1
  trap lumitui_activation_ended EXIT
  set +e
  if [[ -f $1/bin/activate && ! -d $1/conda-meta ]]; then
    . "$1/bin/activate"
    # A copied or renamed folder activates the original one.
    [[ -z ${VIRTUAL_ENV-} || $VIRTUAL_ENV -ef $1 ]] || { why="its bin/activate is of $VIRTUAL_ENV"; false; }
  elif [[ -f $1/pixi.toml || -d $1/.pixi ]]; then
    file=$1/pixi.toml; [[ -f $file ]] || file=$1/pyproject.toml
    PATH=$PATH:$HOME/.pixi/bin
    hook=$(pixi shell-hook --shell bash --frozen --manifest-path "$file") && eval "$hook"
  elif [[ $1 == /* && ! -d $1/conda-meta ]]; then
    why='it has neither bin/activate, conda-meta nor pixi.toml'
    false
  elif tool=$(command -v conda) || tool=$(command -v mamba) || tool=$(command -v micromamba); then
    tool=${tool##*/}
    hook=$("$tool" shell.bash hook 2>/dev/null) || hook=$("$tool" shell hook --shell bash) && eval "$hook"
    "$tool" activate "$1"
  else
    why='no conda, mamba or micromamba is found'
    false
  fi
  set -- "$1" "$?"
  if declare -F lumitui_leave >/dev/null; then trap lumitui_leave EXIT; else trap - EXIT; fi
  [[ -z $strict ]] || set -e
  [[ $2 == 0 ]] || echo "lumitui: cannot activate $1${why:+: $why}" >&2
  return "$2"
}

lumitui_activation_ended() {
  echo "lumitui: cannot activate $lumitui_place: it calls exit" >&2
  if declare -F lumitui_leave >/dev/null; then (exit 1) || lumitui_leave; fi # the previous trap
  exit 1
}
