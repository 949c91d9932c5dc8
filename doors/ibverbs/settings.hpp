#pragma once
// Settings of this door, from `fairlead run`, the environment, or the settings file.

#include <cstdint>

namespace fairlead::ibverbs {

struct Settings {
  bool is_infiniband = false;  // FAIRLEAD_PERSONALITY=roce|ib: the link type that programs see (docs/ibverbs.md)
  unsigned devices = 1;        // FAIRLEAD_DEVICES=1..16
  bool explains = false;       // FAIRLEAD_EXPLAIN=1: report at exit what happened
};

/// Returns the settings, which are read once. Reports a malformed setting on standard error and uses its default.
const Settings& settings();

}  // namespace fairlead::ibverbs
