# Builds the shared library as for packages. Compares its exported names with the public headers, and its ABI with the
# stored one of its SONAME. `./dev abi --accept` stores the ABI of this tree: for a new SONAME, or after additions.
run_abi() {
  local is_accepted=false
  if [ "${1:-}" = --accept ]; then
    is_accepted=true
    shift
  fi
  [ $# = 0 ] || die "usage: ./dev abi [--accept]"
  need build abi
  configure abi
  compile build/abi
  check_public_names || die "cmake/exports.map and the public headers differ"
  local library=build/abi/libfairlead.so stored now=build/abi/now.abi
  stored=packaging/abi/$(basename "$(readlink -f "$library")" | sed 's/\.[0-9]*$//').abi.xz
  # abidiff compares two files of abidw, because abidw reads a library differently from its own files. Types outside of the
  # public headers do not matter.
  abidw --exported-interfaces-only --no-corpus-path --no-comp-dir-path --short-locs --no-elf-needed --no-architecture \
    --no-parameter-names --out-file "$now" "$library"
  if $is_accepted; then
    mkdir -p "$(dirname "$stored")"
    xz --keep --stdout "$now" >"$stored"
    echo "$stored is the ABI of this tree"
    return
  fi
  [ -f "$stored" ] || die "$stored is missing: a new SONAME needs ./dev abi --accept"
  xz --decompress --stdout "$stored" >build/abi/stored.abi
  local change=0
  abidiff --headers-dir1 include --headers-dir2 include --no-added-syms build/abi/stored.abi "$now" || change=$?
  [ $change = 0 ] || die "the ABI differs from $stored: programs that were built with it would break.
Undo it, or change the SONAME (the version in CMakeLists.txt), unless its release is not out yet, and run ./dev abi --accept"
  echo "the ABI is that of $stored, but for what was added"
}

# Lists the classes and free functions of the public headers; a class ends with ::.
public_names() {
  { cat packaging/Doxyfile; echo "GENERATE_MAN = NO"; echo "GENERATE_TAGFILE = $1"; } | doxygen - >/dev/null
  awk -F'[<>]' '
    /<compound /{kind = /kind="(class|struct)"/ ? "class" : /kind="namespace"/ ? "namespace" : "other"}
    /<member /{member = /kind="function"/ ? "function" : "other"}
    /<name>/{
      if (!member) {scope = $3; sub(/&lt;.*/, "", scope); if (kind == "class") print scope "::"}
      if (member == "function" && kind == "namespace") print scope "::" $3
      if (member == "function" && scope ~ /\.h$/) print $3  # functions of the C header
      member = ""
    }' "$1" | sort -u
}

# Reads the output of nm -C. Prints names without parameters; for members of a public class, the class.
names_of() {
  awk -v kinds="$2" -v public="$1" '
    BEGIN {while ((getline name <public) > 0) is_public[name] = 1}
    $2 ~ "^[" kinds "]$" {
      name = $0; sub(/^[0-9a-f]* . /, "", name); sub(/[(\[@].*/, "", name)
      owner = name; sub(/::[^:]*$/, "::", owner)
      print (owner in is_public ? owner : name), (owner in is_public || name in is_public ? "public" : "other")
    }' | sort -u
}

check_public_names() {
  local folder=build/abi/names status=0
  mkdir -p "$folder"
  public_names "$folder/tags" >"$folder/public"
  nm --demangle --dynamic --defined-only build/abi/libfairlead.so | names_of "$folder/public" TBD >"$folder/exported"
  find build/abi/CMakeFiles -name '*.o' -exec nm --demangle --defined-only {} + | names_of "$folder/public" T |
    grep ' public$' >"$folder/wanted"
  if grep ' other$' "$folder/exported"; then
    echo "these are exported, but are in no public header"
    status=1
  fi
  if comm -13 "$folder/exported" "$folder/wanted" | grep .; then
    echo "these are in a public header, but are not exported"
    status=1
  fi
  return $status
}
