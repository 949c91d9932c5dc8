#include "base/rare.hpp"

namespace fairlead::base {
namespace {

// SplitMix64's step and finish.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// A number for the place, the same on every machine (FNV-1a).
std::uint64_t number_of(std::string_view place) {
  std::uint64_t number = 0xcbf29ce484222325;
  for (const char letter : place) number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return number;
}

}  // namespace

bool RareBranches::take(std::string_view place) {
  Count& count = counts_[place];
  count.met += 1;
  std::uint64_t here = seed_ ^ number_of(place);
  if (next_random(here) % kOnePlaceIn != 0 || next_random(state_) % kOneTimeIn != 0) return false;
  count.taken += 1;
  return true;
}

}  // namespace fairlead::base
