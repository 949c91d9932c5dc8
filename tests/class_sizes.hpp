#pragma once
// How many member functions each class of a C++ text declares, counted without a compiler: constructors, operators and
// private ones, too; not those that are inherited, nor friends. A class inside another counts by itself.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::tests {

struct ClassSize {
  std::string name;  // "Link::State"
  std::size_t functions = 0;
};

std::vector<ClassSize> class_sizes(std::string_view text);

}  // namespace fairlead::tests
