# Scratch of the project, and the site's own tree (modules, images) where job scripts expect it.
mount_sized "$SCRATCH" "$SCRATCH_MB" "mode=2770,gid=$(getent group "$ACCOUNT" | cut -d: -f3)" || true
chgrp "$ACCOUNT" "$SCRATCH"; chmod 2770 "$SCRATCH"

# A disk that is quickly full, before the nodes start and see what is mounted.
SMALL=/scratch/small$(tr / - <<< "$ROOT")
mount_sized "$SMALL" 16 mode=1777,nr_inodes=5000 || true

if [[ $TREE_LINK ]]; then
  tree=$ROOT${TREE_LINK}
  rm -rf "$tree.new"; cp -r --no-dereference "$here/shapes/$SHAPE$TREE_LINK" "$tree.new"
  find "$tree.new" -type f -exec sed -i "s|@PYTHON@|$PYTHON|g" {} +
  chmod -R a+rX "$tree.new"
  if diff -rq "$tree.new" "$tree" >/dev/null 2>&1; then rm -rf "$tree.new"
  else rm -rf "$tree.old"; [[ ! -e $tree ]] || mv "$tree" "$tree.old"; mv "$tree.new" "$tree"; rm -rf "$tree.old"; fi
  if [[ ! -e $TREE_LINK && ! -L $TREE_LINK ]]; then ln -s "$tree" "$TREE_LINK"; echo "$TREE_LINK" >> "$ROOT/made/links"; fi
  diff -rq "$TREE_LINK/" "$tree/" >/dev/null || echo "cluster: $TREE_LINK is there already and not this cluster's" >&2
fi
