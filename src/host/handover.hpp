#pragma once
// A stopped host engine, and everything that the next program in this process needs to continue. If that program does
// not start, this one continues, and only a pause has happened.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "embedded/frozen_engine.hpp"
#include "host/service_state.hpp"

namespace fairlead::host {

struct Handover {
  struct Frozen {
    std::uint32_t thread;
    std::unique_ptr<embedded::FrozenEngine> engine;
  };
  std::vector<Frozen> frozen;  // while this object lives
  base::SavedBytes state;
  std::vector<int> descriptors;  // must stay open
};

}  // namespace fairlead::host
