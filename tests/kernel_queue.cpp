#include "tests/kernel_queue.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace fairlead::tests {

KernelQueue kernel_queue(int port) {
  std::ifstream table("/proc/net/udp");
  KernelQueue sum;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    if (fields.size() < 13 || !fields[1].ends_with(fmt::format(":{:04X}", port))) continue;
    sum.waiting += std::stoull(fields[4].substr(fields[4].find(':') + 1), nullptr, 16);
    sum.dropped += std::stoull(fields[12]);
  }
  return sum;
}

}  // namespace fairlead::tests
