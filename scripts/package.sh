# Builds the Debian packages of this tree in build/package, and checks them with lintian. With --test it then installs,
# uses and removes them in a minimal Debian 12 (tests/packages_in_clean_debian.sh; as root, with debootstrap).
run_package() {
  local is_tested=false
  if [ "${1:-}" = --test ]; then
    is_tested=true
    shift
  fi
  [ $# = 0 ] || die "usage: ./dev package [--test]"
  need build package
  local version
  version=$(dpkg-parsechangelog --file packaging/debian/changelog --show-field Version)
  grep -q "project(fairlead VERSION $version " CMakeLists.txt ||
    die "packaging/debian/changelog says $version, CMakeLists.txt something else: make them say the same"
  local folder=build/package source=build/package/fairlead-$version
  rm -rf "$folder"
  mkdir -p "$source"
  tar --create --exclude=./build --exclude=./build-* --exclude=./.git . | tar --extract --directory "$source"
  cp -r packaging/debian "$source/debian"
  echo "building the packages, log in $folder/log"
  (cd "$source" && dpkg-buildpackage --build=binary --unsigned-changes --unsigned-buildinfo) >"$folder/log" 2>&1 ||
    { tail -n 30 "$folder/log" >&2; die "the packages could not be built"; }
  lintian --allow-root --fail-on error,warning "$folder"/fairlead_"$version"_*.changes
  local packages
  mapfile -t packages < <(find "$folder" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' | sort)
  printf '%s\n' "${packages[@]}"
  if $is_tested; then
    tests/packages_in_clean_debian.sh "${packages[@]}"
  fi
}
