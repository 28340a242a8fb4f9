# The python of the images: the system's python3, readable by everyone, with the packages of PYTHON_FROM.
# Hard links where the file system allows, so that it costs no room; made aside and swapped in.
version=$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
packages=$PYTHON_FROM/lib/$version/site-packages
# An environment may have its packages from another one (a .pth file): its own python says from which.
[[ -d $packages/torch || ! -x $PYTHON_FROM/bin/python ]] || packages=$("$PYTHON_FROM/bin/python" -c \
  'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))' 2>/dev/null) || packages=''
[[ ! -d $packages/torch ]] || PYTHON_FROM=${packages%/lib/*}
laptop='lumitui|textual|paramiko|pytest|_pytest|mypy|mypyc|ruff|hypothesis'   # an image has none of these
if [[ -d $packages/torch && -d $packages/deepspeed ]]; then
  stamp="$version $packages $(cd "$packages" && ls -d ./*.dist-info | sha256sum)"
else
  stamp="$version installed"; packages=''
fi
if [[ $(cat "$PYTHON/.stamp" 2>/dev/null) != "$stamp" ]]; then
  fresh=$PYTHON.new; rm -rf "$fresh"
  if [[ $packages ]]; then
    /usr/bin/python3 -m venv --without-pip "$fresh"
    inside=$fresh/lib/$version/site-packages; rm -rf "$inside"
    cp -al "$packages" "$inside" 2>/dev/null || { rm -rf "$inside"; cp -a "$packages" "$inside"; }
    find "$inside" -maxdepth 1 \( -name '__editable__*' -o -name '*.pth' ! -name distutils-precedence.pth -o -name '*.egg-link' \) -delete
    find "$inside" -maxdepth 1 -regextype posix-extended -regex ".*/($laptop)(-.*)?" -exec rm -rf {} +
    for script in "$PYTHON_FROM"/bin/*; do
      name=${script##*/}
      [[ -L $script || $name =~ ^(python|pip|activate|Activate|$laptop|py\.test|lint-imports) ]] && continue
      if [[ $(head -c 2 "$script") == '#!' ]]; then sed "1s|^#!.*python.*|#!$PYTHON/bin/python|" "$script" > "$fresh/bin/$name"; chmod 755 "$fresh/bin/$name"
      else cp -p "$script" "$fresh/bin/$name"; fi
    done
  else
    /usr/bin/python3 -m venv "$fresh"
    "$fresh/bin/python" -m pip install -q torch==2.13.0 deepspeed
  fi
  grep -rl --include='*' "$fresh" "$fresh/bin" "$fresh/pyvenv.cfg" 2>/dev/null | xargs -r sed -i "s|$fresh|$PYTHON|g"
  chmod -R a+rX "$fresh/bin" "$fresh/pyvenv.cfg"
  find "$fresh/lib" \( -type d ! -perm -005 -o -type f ! -perm -004 \) -exec chmod a+rX {} +
  echo "$stamp" > "$fresh/.stamp"
  rm -rf "$PYTHON.old"; [[ ! -e $PYTHON ]] || mv "$PYTHON" "$PYTHON.old"; mv "$fresh" "$PYTHON"; rm -rf "$PYTHON.old"
  touch "$ROOT/made/python"
fi
