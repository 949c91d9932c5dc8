#pragma once
// What the door is told by `fairlead run`, in the environment, or by the file of settings.

#include <cstdint>

namespace fairlead::ibverbs {

struct Settings {
  bool is_infiniband = false;  // FAIRLEAD_PERSONALITY=roce|ib: what programs believe the link to be (docs/ibverbs.md)
  unsigned devices = 1;        // FAIRLEAD_DEVICES=1..16
  bool explains = false;       // FAIRLEAD_EXPLAIN=1: tell at exit what happened
};

/// Read once. What cannot be understood is told on standard error and left at its default.
const Settings& settings();

}  // namespace fairlead::ibverbs
