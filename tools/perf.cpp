#include "tools/command_line.hpp"
namespace fairlead::tools {
void add_perf(CLI::App&, int&) {}
}
