#pragma once
// The header word of each active message: handler, number of arguments, kind.

#include <cstdint>

#include <fairlead/am/handler.hpp>

namespace fairlead::am {

struct Word {
  enum class Kind : std::uint8_t { brief, medium, large, get, empty, last = empty };
  Kind kind = Kind::brief;
  std::uint8_t handler = 0;
  std::uint8_t arguments = 0;

  std::uint16_t pack() const {
    return static_cast<std::uint16_t>(handler | arguments << 8 | static_cast<unsigned>(kind) << 13);
  }
  static Word unpack(std::uint16_t word) {
    return {static_cast<Kind>(word >> 13), static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8 & 31)};
  }
  bool is_valid() const { return kind <= Kind::last && arguments <= kArgumentsMax; }
  Size size() const { return kind == Kind::medium ? Size::medium : kind == Kind::brief ? Size::brief : Size::large; }
  Operation operation(bool is_request) const {
    return static_cast<Operation>(static_cast<int>(size()) +
                                  static_cast<int>(is_request ? Operation::request : Operation::reply));
  }
};

}  // namespace fairlead::am
