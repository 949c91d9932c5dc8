# Builds the site of the pages in build/docs/site, with Debian's mkdocs; open index.html. The build needs no network, and
# the pages load nothing from another host (packaging/site/check.py). The page of commands needs build/bin/fairlead
# (./dev build).
run_docs() {
  [ $# = 0 ] || die "usage: ./dev docs"
  need docs
  local commands=() program
  for program in build/bin/fairlead build/bin/fairleadd; do
    [ ! -x "$program" ] || commands+=("$program")
  done
  [ ${#commands[@]} -gt 0 ] || echo "dev: without build/bin/fairlead the page of the commands is empty: ./dev build"
  tests/pages/links.py
  packaging/site/pages.py build/docs/pages "${commands[@]}"
  mkdocs build --quiet --config-file packaging/site/mkdocs.yml
  packaging/site/check.py build/docs/site
  echo "open $PWD/build/docs/site/index.html"
}
