# Functions that the commands of ./dev share: error messages, installing packages, configuring and building.

die() {
  echo "dev: $*" >&2
  exit 1
}

# All Debian packages, by purpose.
packages_for() {
  case $1 in
    build) echo g++ cmake ninja-build pkgconf libfmt-dev libboost-dev libisal-dev libssl-dev $([ "$(uname -m)" = x86_64 ] && echo libipsec-mb-dev) libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libibverbs-dev ;;
    test) echo libgtest-dev libgmock-dev libasio-dev libpmix-dev python3 ;;
    programs) echo spin iproute2 nftables ethtool ibverbs-utils perftest qperf python3-pyverbs rdma-core openmpi-bin python3-mpi4py ucx-utils rdmacm-utils fio iperf libfabric-bin mpich zsh ;;
    bench) echo libck-dev libreaderwriterqueue-dev ;;
    plot) echo gnuplot-nox ;;
    fuzz) echo clang-19 libclang-rt-19-dev ;;
    format) echo clang-format-19 ;;
    check) echo clang-tidy-19 ;;
    abi) echo abigail-tools doxygen xz-utils ;;
    package) echo debhelper dpkg-dev fakeroot help2man doxygen lowdown bash-completion lintian libpmix-dev debootstrap ;;
    browser) echo chromium-headless-shell ;;
    arm64) echo g++-12-aarch64-linux-gnu qemu-user mmdebstrap ;;
    arm64-sysroot) echo libstdc++-12-dev libc6-dev libfmt-dev libboost-dev libisal-dev libssl-dev libssl3 libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libibverbs-dev libgtest-dev libgmock-dev libasio-dev libpmix-dev ;;
    docs) echo python3 mkdocs mkdocs-material ;;
    *) die "no packages are listed for '$1'" ;;
  esac
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo ${CI:+-n} "$@"
  fi
}

# need GROUP...: installs missing packages of these groups.
need() {
  local group wanted=() missing=() packages package
  for group in "$@"; do
    read -ra packages <<<"$(packages_for "$group")"
    wanted+=("${packages[@]}")
  done
  if ! command -v apt-get >/dev/null; then
    echo "dev: no apt here; what Debian calls ${wanted[*]} has to be installed" >&2
    return
  fi
  for package in "${wanted[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then
    return
  fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    die "packages are missing, and there is neither root nor sudo; as root: apt-get install ${missing[*]}"
  fi
  echo "installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { as_root apt-get update &&
         as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
       } </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt could not install what is missing; look above, then: apt-get install ${missing[*]}"
  fi
  rm -f "$log"
}

# configure PRESET [CMAKE ARGUMENT...]
configure() {
  local preset=$1 faster=(-D FAIRLEAD_UNITY=ON)
  shift
  if command -v ccache >/dev/null; then
    faster=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache)  # it caches no object that uses precompiled headers
  elif [ "$preset" = release ]; then
    # GCC collects its garbage only beyond a GiB; large files need up to an eighth less time.
    faster+=(-D FAIRLEAD_PRECOMPILED_HEADERS=ALL -D CMAKE_CXX_FLAGS="${CXXFLAGS:+$CXXFLAGS }--param ggc-min-heapsize=1048576")
  fi
  echo "configuring the $preset build"
  cmake --preset "$preset" "${faster[@]}" "$@" >/dev/null
}

# Lists all C++ files of the project, one per line.
cxx_files() {
  local folders=(bench daemon doors examples include sim src tests tools) folder
  for folder in "${folders[@]}"; do
    if [ -d "$folder" ]; then
      find "$folder" -name '*.hpp' -o -name '*.cpp'
    fi
  done | sort
}

# compile FOLDER [TARGET...]
compile() {
  local folder=$1
  shift
  cmake --build "$folder" --parallel "$(nproc)" ${1:+--target "$@"}
}
