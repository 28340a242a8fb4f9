# Slurm 24.11 of Debian 13 (trixie), for SLURM=24: a chroot by debootstrap, half a minute, once for all clusters
# of this machine. The programs are started from outside, by path, with the tree's own loader and libraries:
# a process in a chroot may not make the user namespace of a container (unshare(2), EPERM), and trixie's python
# is not the images'. So jobs find the machine's own system, modules and images under either Slurm.
trixie_mirror() {  # where this machine's own apt finds Debian
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -1
}

make_trixie() {  # make_trixie FOLDER: a tree that will be moved to $TRIXIE; status 1 and a word on stderr if not
  local fresh=$1 mirror loader libraries program proxy=''
  mirror=$(trixie_mirror); [[ $mirror ]] || { apt-get update -qq; mirror=$(trixie_mirror); }
  [[ $mirror ]] || { echo "apt's sources have no mirror of Debian" >&2; return 1; }
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  http_proxy=${proxy:-${http_proxy:-}} timeout 600 debootstrap --variant=minbase \
    --include=slurmctld,slurmd,slurm-client,slurmdbd,munge trixie "$fresh" "$mirror" >&2 || return 1
  rm -rf "$fresh"/var/cache/apt/archives "$fresh"/var/lib/apt/lists "$fresh"/usr/share/{doc,man,locale}

  loader=$(patchelf --print-interpreter "$fresh/usr/sbin/slurmdbd") || return 1
  libraries=$(dirname "$(find "$fresh/usr/lib" -name libslurmfull.so)") libraries=${libraries#"$fresh"}
  mkdir "$fresh/slurm"
  for program in $(chroot "$fresh" dpkg -L slurmctld slurmd slurm-client slurmdbd | grep -E '^/usr/s?bin/'); do
    install -m 755 "$fresh$program" "$fresh/slurm/$(basename "$program" -wlm)" || return 1
  done
  # RPATH, not RUNPATH: it counts for the plugins that a program loads and for their libraries too
  patchelf --force-rpath --set-rpath "$TRIXIE$libraries:$TRIXIE${libraries%/*}" "$fresh$libraries"/*.so "$fresh"/slurm/* \
    && patchelf --set-interpreter "$TRIXIE$loader" "$fresh"/slurm/*
}

if [[ $SLURM == 24 ]]; then
  stamp=$(cksum < "$here/parts/trixie.sh")
  if [[ $(cat "$TRIXIE/.stamp" 2>/dev/null) != "$stamp" ]]; then
    rm -rf --one-file-system "$TRIXIE.new"
    make_trixie "$TRIXIE.new" 2> "$ROOT/log/trixie.log" || { echo "cluster: no Slurm 24: $(tail -3 "$ROOT/log/trixie.log")" >&2; exit 1; }
    echo "$stamp" > "$TRIXIE.new/.stamp"
    rm -rf --one-file-system "$TRIXIE.old"; [[ ! -e $TRIXIE ]] || mv "$TRIXIE" "$TRIXIE.old"
    mv "$TRIXIE.new" "$TRIXIE"; rm -rf --one-file-system "$TRIXIE.old"
    touch "$ROOT/made/trixie"
  fi
  PLUGINS=$(dirname "$(find "$TRIXIE/usr/lib" -name libslurmfull.so)")
fi
