// The `fairlead` command. Each subcommand has a file of its own.
#include "tools/program.hpp"

int main(int argc, char** argv) {
  return fairlead::tools::run_program(argc, argv);
}
