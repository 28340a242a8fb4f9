# The Slurm of a newer Debian, for SLURM=24 and 26: a chroot by debootstrap, half a minute, once for all clusters
# of this machine. The programs are started from outside, by path, with the tree's own loader and libraries:
# a process in a chroot may not make the user namespace of a container (unshare(2), EPERM), and its python
# is not the images'. So jobs find the machine's own system, modules and images under either Slurm.
debian_mirror() {  # where this machine's own apt finds Debian
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -1
}

make_tree() {  # make_tree FOLDER: a tree that will be moved to $TREE; status 1 and a word on stderr if not
  local fresh=$1 mirror loader libraries program script proxy=''
  mirror=$(debian_mirror); [[ $mirror ]] || { apt-get update -qq; mirror=$(debian_mirror); }
  [[ $mirror ]] || { echo "apt's sources have no mirror of Debian" >&2; return 1; }
  script=/usr/share/debootstrap/scripts/$SUITE   # of a suite that is newer than debootstrap itself, sid's does
  [[ -e $script ]] || script=/usr/share/debootstrap/scripts/sid
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  http_proxy=${proxy:-${http_proxy:-}} timeout 600 debootstrap --variant=minbase \
    --include=slurmctld,slurmd,slurm-client,slurmdbd,munge "$SUITE" "$fresh" "$mirror" $script >&2 || return 1
  rm -rf "$fresh"/var/cache/apt/archives "$fresh"/var/lib/apt/lists "$fresh"/usr/share/{doc,man,locale}

  loader=$(patchelf --print-interpreter "$fresh/usr/sbin/slurmdbd") || return 1
  libraries=$(dirname "$(find "$fresh/usr/lib" -name libslurmfull.so)") libraries=${libraries#"$fresh"}
  mkdir "$fresh/slurm"
  for program in $(chroot "$fresh" dpkg -L slurmctld slurmd slurm-client slurmdbd | grep -E '^/usr/s?bin/'); do
    install -m 755 "$fresh$program" "$fresh/slurm/$(basename "$program" -wlm)" || return 1
  done
  # RPATH, not RUNPATH: it counts for the plugins that a program loads and for their libraries too
  patchelf --force-rpath --set-rpath "$TREE$libraries:$TREE${libraries%/*}" "$fresh$libraries"/*.so "$fresh"/slurm/* \
    && patchelf --set-interpreter "$TREE$loader" "$fresh"/slurm/*
}

if [[ $SUITE ]]; then
  stamp=$(cksum < "$here/parts/newer.sh")
  if [[ $(cat "$TREE/.stamp" 2>/dev/null) != "$stamp" ]]; then
    rm -rf --one-file-system "$TREE.new"
    make_tree "$TREE.new" 2> "$ROOT/log/$SUITE.log" || { echo "cluster: no Slurm $SLURM: $(tail -3 "$ROOT/log/$SUITE.log")" >&2; exit 1; }
    echo "$stamp" > "$TREE.new/.stamp"
    rm -rf --one-file-system "$TREE.old"; [[ ! -e $TREE ]] || mv "$TREE" "$TREE.old"
    mv "$TREE.new" "$TREE"; rm -rf --one-file-system "$TREE.old"
    echo "$TREE" >> "$ROOT/made/trees"
  fi
  PLUGINS=$(dirname "$(find "$TREE/usr/lib" -name libslurmfull.so)")
fi
