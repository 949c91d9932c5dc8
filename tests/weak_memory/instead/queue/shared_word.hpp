#pragma once
// Replaces src/queue/shared_word.hpp.

#include "tests/weak_memory/checked_word.hpp"

namespace fairlead::queue {

using SharedWord = tests::CheckedWord;

}  // namespace fairlead::queue
