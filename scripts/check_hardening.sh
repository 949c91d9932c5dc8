#!/usr/bin/env bash
# check_hardening.sh BUILD BINARY...: checks the binaries of a build of the preset `hardened`. Prints each missing property
# on a line; exit code 1 if there is one.
set -euo pipefail
build=$1
shift
case $(uname -m) in  # the instruction that marks targets of indirect jumps
  aarch64) branches=-mbranch-protection=standard marks='\b(bti|paciasp)\b' ;;
  *) branches=-fcf-protection=full marks='\bendbr64\b' ;;
esac
bad=0

complain() {
  echo "$*"
  bad=1
}

# want BINARY TEXT PATTERN MEANING: fails unless the text contains the pattern.
want() { grep -qE -- "$3" <<<"$2" || complain "$1: $4"; }

for binary in "$@"; do
  [ -f "$binary" ] || { complain "$binary: not built"; continue; }
  headers=$(readelf -hW "$binary") segments=$(readelf -lW "$binary") dynamic=$(readelf -dW "$binary")
  symbols=$(readelf --dyn-syms -W "$binary")
  want "$binary" "$headers" 'Type: +DYN' 'can only be loaded at one address (PIE)'
  want "$binary" "$segments" 'GNU_RELRO' 'its tables stay writable (-z relro)'
  want "$binary" "$dynamic" 'BIND_NOW|FLAGS_1.*NOW' 'looks symbols up late, in tables that stay writable (-z now)'
  want "$binary" "$segments" 'GNU_STACK .* RW ' 'has a stack that can be executed'
  want "$binary" "$symbols" ' __stack_chk_fail' 'has no guarded stacks (-fstack-protector-strong)'
  want "$binary" "$symbols" ' __[a-z]+_chk' 'calls nothing that checks its buffers (_FORTIFY_SOURCE)'
  want "$binary" "$symbols" '__glibcxx_assert_fail' 'checks no conditions of the standard library (_GLIBCXX_ASSERTIONS)'
  [ "$(objdump -d --no-show-raw-insn "$binary" | grep -cE "$marks")" -gt 100 ] ||
    complain "$binary: does not mark the targets of its jumps ($branches)"
  ! grep -q TEXTREL <<<"$dynamic" || complain "$binary: its code is written to when it is loaded"
done

# Options that leave no trace in a binary, or whose trace could come from another object file.
for flag in -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong -fstack-clash-protection $branches; do
  without=$(grep '"command"' "$build/compile_commands.json" | grep -E ' -c [^ ]*/(src|doors|tools)/' | grep -cv -- " $flag " || true)
  [ "$without" = 0 ] || complain "$without sources are compiled without $flag"
done
[ $bad = 0 ] && echo "$# binaries are hardened"
exit $bad
