#pragma once
// While it lives, what we are at in a peer's memory stays in place.

#include "shm/connection.hpp"

namespace fairlead::shm {

class ReadSection {
 public:
  ReadSection(Connection& peer, Use use) : peer_(peer) { peer_.enter(use); }
  ~ReadSection() { peer_.leave(); }
  ReadSection(const ReadSection&) = delete;
  ReadSection& operator=(const ReadSection&) = delete;

 private:
  Connection& peer_;
};

}  // namespace fairlead::shm
