#pragma once
// Counts the member functions that each class of a C++ text declares, without a compiler. Constructors, operators and
// private functions count; inherited functions and friends do not. A nested class counts separately.

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
