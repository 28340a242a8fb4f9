# Scratch of the project, and the site's own tree (modules, images) where job scripts expect it.
mount_sized "$SCRATCH" "$SCRATCH_MB" "mode=2770,gid=$(getent group "$ACCOUNT" | cut -d: -f3)" || true
chgrp "$ACCOUNT" "$SCRATCH"; chmod 2770 "$SCRATCH"

# A disk that is quickly full, before the nodes start and see what is mounted.
SMALL=/scratch/small$(tr / - <<< "$ROOT")
mount_sized "$SMALL" 16 mode=1777,nr_inodes=5000 || true

# copy_tree NAME: a folder of the shape as $ROOT/NAME, where @PYTHON@ is the images' python
copy_tree() {
  local tree=$ROOT/$1
  rm -rf "$tree.new"; mkdir -p "$(dirname "$tree")"; cp -r --no-dereference "$here/shapes/$SHAPE/$1" "$tree.new"
  find "$tree.new" -type f -exec sed -i "s|@PYTHON@|$PYTHON|g" {} +
  chmod -R a+rX "$tree.new"
  (cd "$ROOT" && p=$(dirname "$1") && while [[ $p != . ]]; do chmod a+rx "$p"; p=$(dirname "$p"); done)
  if diff -rq "$tree.new" "$tree" >/dev/null 2>&1; then rm -rf "$tree.new"
  else rm -rf "$tree.old"; [[ ! -e $tree ]] || mv "$tree" "$tree.old"; mv "$tree.new" "$tree"; rm -rf "$tree.old"; fi
}

# Modules of the shape that no absolute path names.
[[ -z $MODULES || $MODULES == /* ]] || copy_tree "$MODULES"
if [[ $TREE_LINK ]]; then
  tree=$ROOT$TREE_LINK
  copy_tree "${TREE_LINK#/}"
  mkdir -p "$(dirname "$TREE_LINK")"
  [[ -e $TREE_LINK || ! -L $TREE_LINK ]] || rm "$TREE_LINK"   # of a cluster whose folder was deleted
  if [[ ! -e $TREE_LINK ]]; then ln -s "$tree" "$TREE_LINK"; echo "$TREE_LINK" >> "$ROOT/made/links"; fi
  diff -rq "$TREE_LINK/" "$tree/" >/dev/null || echo "cluster: $TREE_LINK is there already and not this cluster's" >&2
fi
